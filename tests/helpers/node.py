"""The calculations of the playground in Node, without a browser."""

import json
import re
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

NODE = shutil.which("node") or shutil.which("nodejs")
_LOOP = """
const {runInThisContext} = require("vm");
require("readline").createInterface({input: process.stdin}).on("line", async line => {
  let answer;
  try { answer = {value: await runInThisContext(JSON.parse(line))}; } catch (error) { answer = {error: error.stack}; }
  console.log(JSON.stringify(answer));
});
"""


class Node(AbstractContextManager["Node"]):
    """Node with what a page of the playground computes with."""

    def __init__(self, page: Path) -> None:
        self._process = subprocess.Popen(
            [str(NODE), "-e", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        text = page.read_text(encoding="utf-8")
        scripts = re.findall("<script([^>]*)>(.*?)</script>", text, re.DOTALL)
        for attributes, script in scripts:
            if "computing" in attributes or "function shannonBounds" in script:
                self.run(f"{script}; undefined")
        blocks = {attributes.split('"')[-2]: text for attributes, text in scripts if 'class="block"' in attributes}
        (data,) = (text for attributes, text in scripts if 'id="data"' in attributes)
        self.run(f"const data = {data}; begin({{data, blocks: {json.dumps(blocks)}}})")
        self.run("const idOf = new Map(data.tokens.map((token, id) => [token, id])); undefined")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, expression: str) -> Any:
        """Return the value of an expression, awaited if it is a promise."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(expression)}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer.get("value")
