"""Directives that write the reference from the code: settings, stages, columns and exit codes.

Commands come from sphinx-click, and Python from autodoc.
"""

import ast
import inspect
import re
import subprocess
from itertools import pairwise
from typing import Any

from docutils import nodes
from ruamel.yaml import YAML
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from doc_values import ROOT, markdown_table
from seqlm.core.errors import SeqlmError
from seqlm.pipeline.configure.settings import Params
from seqlm.pipeline.evaluate.main_table import Row
from seqlm.train.settings import RunConfig
from smoke import environment_of_python

_KINDS = {"boolean": "`true` or `false`", "integer": "integer", "null": "empty", "number": "number", "string": "text"}
_SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_SETTING = re.compile(r"( *)([\w-]+):(.*?)(?:\s+#\s*(.*))?")


def settings() -> str:
    """Return each setting of params.yaml with its comment, its value there, and what its model allows."""
    listed: list[tuple[str, str, str]] = []
    parents: list[tuple[int, str]] = []
    for line in (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines():
        if match := _SETTING.fullmatch(line):
            parents = [*(parent for parent in parents if parent[0] < len(match[1])), (len(match[1]), match[2])]
            listed.append((".".join(key for _, key in parents), match[3].strip(), match[4] or ""))
        elif item := re.fullmatch(" +- (.*)", line):
            name, value, comment = listed[-1]
            listed[-1] = name, f"{value}, {item[1]}".removeprefix(", "), comment
    written, section = "## All stages\n\n", ""
    for name, value, comment in listed:
        first, _, rest = name.partition(".")
        if first == "runs" or not (value or (comment and rest)):
            continue
        if rest and first != section:
            section = first
            written += f"## {section}\n\n"
        kind = f":type: {allowed(name)}\n" if allowed(name) else ""
        default = f":default: `{value}`\n" if value else ""
        written += f"```{{confval}} {name}\n{kind}{default}\n{comment}\n```\n\n"
    return written


def allowed(name: str) -> str:
    """Return the values that a setting may have, in words; none of a section."""
    section, _, rest = name.partition(".")
    schema, path = (RunConfig.model_json_schema(), rest) if section == "train" else (Params.model_json_schema(), name)
    definitions = schema.get("$defs", {})
    found = [schema]
    for key in path.split("."):
        mapping = next(part for part in found if part.get("type") == "object")
        found = _alternatives(mapping.get("properties", {}).get(key) or mapping["additionalProperties"], definitions)
    words = [_describe(part, definitions) for part in found]
    return " or ".join(words) if all(words) else ""


def _alternatives(schema: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of a schema, each in full."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" not in schema:
        return [schema]
    return [full for part in schema["anyOf"] for full in _alternatives(part, definitions)]


def _describe(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return the values that one alternative allows; an empty text for a section."""
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in values)
    if schema["type"] == "object":
        return ""
    if schema["type"] == "array":
        (item,) = _alternatives(schema["items"], definitions)
        return f"list, each {_describe(item, definitions)}"
    bounds = [f"{sign} {schema[key]:,}" for key, sign in _SIGNS.items() if key in schema]
    return f"{_KINDS[schema['type']]} {' and '.join(bounds)}".strip()


def stages() -> str:
    """Return the graph of the stages and what each does; vocab@char and the like are one stage."""
    command = ["dvc", "dag", "--md"]
    dag = subprocess.run(command, cwd=ROOT, env=environment_of_python(), capture_output=True, text=True, check=True)
    names = dict(re.findall(r"(node\d+)\[\"([^\"@]+)", dag.stdout))
    edges = {(names[before], names[after]) for before, after in re.findall(r"(node\d+)-->(node\d+)", dag.stdout)}

    def later(stage: str) -> set[str]:
        return {name for before, after in edges if before == stage for name in (after, *later(after))}

    # Without the arrows that others imply.
    shown = sorted((a, b) for a, b in edges if not any(b in later(c) for before, c in edges if before == a))
    graph = "".join(f"  {before} --> {after}\n" for before, after in shown)
    bodies = YAML(typ="safe", pure=True).load(ROOT / "dvc.yaml")["stages"]
    rows = [[f"`{name}`", stage.get("do", stage)["desc"]] for name, stage in bodies.items()]
    return f"```mermaid\nflowchart TD\n{graph}```\n\n{markdown_table([['stage', 'does'], *rows])}"


def columns() -> str:
    """Return the columns of the main table."""
    body = ast.parse(inspect.getsource(Row)).body[0].body  # type: ignore[attr-defined]
    rows = [
        [f"`{ast.unparse(field.target)}`", " ".join(ast.literal_eval(meaning.value).split())]
        for field, meaning in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(meaning, ast.Expr)
    ]
    return markdown_table([["column", "meaning"], *rows])


def exit_codes() -> str:
    """Return the exit codes."""
    kinds = sorted(SeqlmError.__subclasses__(), key=lambda kind: kind.exit_code)
    rows = [[str(kind.exit_code), " ".join((kind.__doc__ or "").split())] for kind in kinds]
    return markdown_table([["code", "meaning"], *rows])


def setup(app: Sphinx) -> dict[str, bool]:
    """Make a directive of each function."""
    for write in (settings, stages, columns, exit_codes):

        class Written(SphinxDirective):
            written = staticmethod(write)

            def run(self) -> list[nodes.Node]:
                return self.parse_text_to_nodes(self.written(), allow_section_headings=True)

        app.add_directive(write.__name__.replace("_", "-"), Written)
    return {"parallel_read_safe": True}
