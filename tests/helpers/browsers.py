"""What runs the pages: headless Chromium and Firefox, each with one page, and Node, which only calculates."""

import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Self

from workspace import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FIREFOX = shutil.which("firefox") or shutil.which("firefox-esr")
NODE = shutil.which("node") or shutil.which("nodejs")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
]  # fmt: skip


class Program(AbstractContextManager["Program"]):
    """A program that is driven from here, and killed at the end."""

    def __init__(self, *command: str | None, **options: Any) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([str(word) for word in command], **quiet | options)
        self.open_files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.open_files.close()


class Browser(Program):
    """Chromium, driven through the DevTools protocol over a pipe.

    It records requests, errors and violations of the page's policy.
    """

    def __init__(self, folder: Path) -> None:
        from_page, child_out = os.pipe()
        child_in, to_page = os.pipe()
        # Numbers that nothing else has, above 3 and 4.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (child_in, child_out)]

        def connect() -> None:  # Chromium reads from 3 and writes to 4
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        profile = f"--user-data-dir={folder / 'profile'}"
        super().__init__(CHROMIUM, *FLAGS, profile, "about:blank", preexec_fn=connect, close_fds=False)
        for fd in (child_in, child_out, *high):
            os.close(fd)
        self._out = self.open_files.enter_context(os.fdopen(to_page, "wb", 0))
        self._messages = self._receive(self.open_files.enter_context(os.fdopen(from_page, "rb", 0)))
        self._number, self._to, self.events = 0, dict[str, str](), list[dict[str, Any]]()
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._to = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(1280, 900)

    @staticmethod
    def _receive(pipe: Any) -> Iterator[dict[str, Any]]:
        rest = b""
        while block := pipe.read(1 << 20):
            *messages, rest = (rest + block).split(b"\0")
            yield from map(json.loads, messages)
        raise AssertionError("Chromium has ended")

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | self._to
        self._out.write(json.dumps(message).encode() + b"\0")
        while (answer := next(self._messages)).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path, state: str = "") -> None:
        """Open a page, with a state such as ``#part``, and wait until its scripts have run."""
        self.call("Page.navigate", url=path.resolve().as_uri() + state)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait(self, condition: str) -> None:
        wait_until(lambda: bool(self.run(condition)))

    def run(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        code = {"windowsVirtualKeyCode": 39} if key == "ArrowRight" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def noted(self, *kinds: str) -> list[dict[str, Any]]:
        self.run("1")
        return [event["params"] for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        return [sent["request"]["url"] for sent in self.noted("Network.requestWillBeSent")]

    def problems(self) -> list[str]:
        """Return errors of the page's scripts, and what its policy blocked."""
        return list(map(json.dumps, self.noted("Runtime.exceptionThrown", "Log.entryAdded")))


class Firefox(Program):
    """Firefox with a profile of its own, driven through its Marionette protocol."""

    def __init__(self, folder: Path) -> None:
        (folder / "user.js").write_text('user_pref("marionette.port", 0);\n')  # any that is free
        words = ("--headless", "--marionette", "--no-remote", "--profile", str(folder))
        super().__init__(FIREFOX, *words, env=os.environ | {"HOME": str(folder)})
        port = folder / "MarionetteActivePort"
        wait_until(lambda: port.exists() and port.read_text() != "")
        self._socket = self.open_files.enter_context(socket.create_connection(("127.0.0.1", int(port.read_text()))))
        self._answers = self.open_files.enter_context(self._socket.makefile("rb"))
        self._receive()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "none"}})

    def call(self, command: str, **params: Any) -> Any:
        message = json.dumps([0, 1, command, params]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, _, error, result = self._receive()
        assert error is None, error
        return result

    def _receive(self) -> Any:
        length = b""
        while (digit := self._answers.read(1)) != b":":
            length += digit
        return json.loads(self._answers.read(int(length)))

    def open(self, path: Path) -> None:
        self.call("WebDriver:Navigate", url=path.resolve().as_uri())

    def run(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, which sees the page's elements."""
        return self.call("WebDriver:ExecuteScript", script=f"return {expression}", args=[])["value"]


_LOOP = """
const {runInThisContext} = require("vm");
require("readline").createInterface({input: process.stdin}).on("line", async line => {
  let answer;
  try { answer = {value: await runInThisContext(JSON.parse(line))}; } catch (error) { answer = {error: error.stack}; }
  console.log(JSON.stringify(answer));
});
"""


class Node(Program):
    """Node with what a page of the playground computes with, without a browser."""

    def __init__(self, page: Path) -> None:
        super().__init__(NODE, "-e", _LOOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        scripts = re.findall("<script([^>]*)>(.*?)</script>", page.read_text(encoding="utf-8"), re.DOTALL)
        for attributes, script in scripts:
            if "computing" in attributes or "function shannonBounds" in script:
                self.run(f"{script}; undefined")
        blocks = {attributes.split('"')[-2]: text for attributes, text in scripts if 'class="block"' in attributes}
        (data,) = (text for attributes, text in scripts if 'id="data"' in attributes)
        self.run(f"const data = {data}; begin({{data, blocks: {json.dumps(blocks)}}})")
        self.run("const idOf = new Map(data.tokens.map((token, id) => [token, id])); undefined")

    def run(self, expression: str) -> Any:
        """Return the value of an expression, awaited if it is a promise."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin
        assert stdout
        stdin.write(f"{json.dumps(expression)}\n")
        stdin.flush()
        answer = json.loads(stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer.get("value")
