"""Write docs/reference/ from the code: `python tools/doc_reference.py`; with `--check`, only say what is out of date.

Settings come from params.yaml, their limits from the typed models, stages from dvc.yaml, commands
from the Makefile and the scripts. Only the columns of tables.md are written by hand, except those
of the main table.
"""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import click
from ruamel.yaml import YAML

from seqlm.configure.settings import Params
from seqlm.core.errors import SeqlmError
from seqlm.core.settings import read_params
from seqlm.evaluate.columns import COLUMNS
from seqlm.train.settings import RunConfig
from smoke import ROOT, environment_of_python

REFERENCE = ROOT / "docs" / "reference"
_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w-]+):(?P<value>.*?)(?:\s+#\s*(?P<comment>.*))?")
_KINDS = {"integer": "whole number", "number": "number", "string": "text"}
_KINDS |= {"boolean": "`true` or `false`", "null": "`null`"}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than"}
_BOUNDS |= {"maximum": "at most", "exclusiveMaximum": "less than"}
_SETTINGS = """# Settings

All settings are in `params.yaml`. `dvc exp run -S NAME=VALUE` changes one for an experiment. Every stage checks its own
settings before it starts, and `configure` checks all of them. Some limits depend on other settings: the message about a
refused value says so.
"""
_RUNS = """## runs

Each entry of `runs` is one trained network: its `token` (`char`, `word` or `subword`), and the settings of `train`,
`device`, `seed` and `num_threads` that it overrides.

"""
_STAGES = """# Stages

The stages of `dvc.yaml`, in order. That file says which settings and files each of them reads, and what it writes. A
stage that is repeated, for each kind of token or for each run, has names such as `train@lstm`. Each stage also depends
on its code, its script and the modules that this imports, by their fingerprints in `data/code`. These leave out
comments, docstrings and messages, so an edit of those reruns nothing.
"""
_MAKE = """# Commands

## make

"""
_SCRIPTS = """## Scripts of the stages

DVC runs these scripts, and each also works by hand. All of them take `--help`, and `--root` for the folder that holds
`params.yaml`.
"""
_CODES = """## Exit codes

A stage that fails prints one line: what went wrong, where, and what to do. Started by hand, it ends with one of these
codes. DVC itself ends with 255 whatever the code of the stage was.

"""
_COLUMNS = re.compile(r"(?<=<!-- columns of the main table -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n" for cells in lines)


def code(text: object) -> str:
    """Return text as code, nothing for nothing."""
    return f"`{text}`" if f"{text}" else ""


def prose(text: str) -> str:
    """Return text in which Markdown sees no tag of HTML."""
    return text.replace("<", "&lt;")


class Line(NamedTuple):
    """A setting as params.yaml has it."""

    value: str
    comment: str


def lines(path: Path) -> dict[str, Line]:
    """Return the line of each setting of params.yaml by the setting's dotted name."""
    found: dict[str, Line] = {}
    parents: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _LINE.fullmatch(line):
            parents = [parent for parent in parents if parent[0] < len(match["indent"])]
            parents.append((len(match["indent"]), match["key"]))
            found[".".join(key for _, key in parents)] = Line(match["value"].strip(), match["comment"] or "")
    return found


def schemas() -> dict[str, dict[str, Any]]:
    """Return what each setting allows, as a JSON schema, by the setting's dotted name."""
    found: dict[str, dict[str, Any]] = {}
    for model, prefix in ((Params, ""), (RunConfig, "train.")):
        whole = model.model_json_schema()

        def walk(schema: dict[str, Any], name: str, whole: dict[str, Any] = whole) -> None:
            found[name] = schema
            for part in [schema, *schema.get("anyOf", [])]:
                target = whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
                for key, inner in target.get("properties", {}).items():
                    walk(inner, f"{name}.{key}" if name else key)

        for key, schema in whole["properties"].items():
            walk(schema, f"{prefix}{key}")
    return found


def allowed(schema: dict[str, Any]) -> str:
    """Return in words what a JSON schema allows; nothing for a mapping."""
    kind = schema.get("type", "")
    if "anyOf" in schema:
        return " or ".join(filter(None, map(allowed, schema["anyOf"])))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(shown, schema.get("enum", [schema.get("const")])))
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        return f"each: {allowed(schema['additionalProperties'])}"
    if kind == "array":
        return f"list of: {allowed(schema['items'])}"
    return f"{_KINDS.get(kind, '')}{limits(schema)}"


def limits(schema: dict[str, Any]) -> str:
    """Return in words between which limits a number must be."""
    bounds = {name: f"{schema[name]:{',' if schema[name] < 10**9 else '.3g'}}" for name in _BOUNDS if name in schema}
    if bounds.keys() == {"minimum", "maximum"}:
        return f" from {bounds['minimum']} to {bounds['maximum']}"
    return ",".join(f" {_BOUNDS[name]} {bound}" for name, bound in bounds.items())


def shown(value: object) -> str:
    """Return a value as params.yaml would have it."""
    if isinstance(value, dict):
        return code("{" + ", ".join(f"{key}: {shown(item).strip('`')}" for key, item in value.items()) + "}")
    if isinstance(value, list):
        return code("[" + ", ".join(shown(item).strip("`") for item in value) + "]")
    if isinstance(value, float):
        return code(f"{value:g}")
    if isinstance(value, str):
        return code(repr(value) if not value.strip(" ") else repr(value)[1:-1])
    return "`null`" if value is None else code(str(value).lower())


def settings() -> str:
    """Return the page of all settings."""
    values, schema, written = read_params(ROOT / "params.yaml"), schemas(), lines(ROOT / "params.yaml")
    runs = values.pop("runs")
    sections: dict[str, list[list[str]]] = {}
    meanings: dict[tuple[str, str], str] = {}

    def add(section: str, name: str, key: str, value: Any) -> None:
        line = written[name]
        if isinstance(value, dict) and any(other.startswith(f"{name}.") for other in schema):
            if line.comment and "." in name:
                may_be_null = " or `null`" if "anyOf" in schema[name] else ""
                sections[section].append([code(name), "", f"section{may_be_null}", prose(line.comment)])
            for inner, inner_value in value.items():
                add(section, f"{name}.{inner}", inner, inner_value)
            return
        # Settings of several kinds of tokens, such as min_freq, are described at the first.
        meaning = line.comment or meanings.get((section, key), "")
        meanings[section, key] = meaning
        default = code(line.value) if line.value else shown(value)
        sections.setdefault(section, []).append([code(name), default, allowed(schema.get(name, {})), prose(meaning)])

    for name, value in values.items():
        section = name if isinstance(value, dict) else ""
        sections.setdefault(section, [])
        add(section, name, name, value)
    parts = [_SETTINGS]
    for section, rows in sections.items():
        parts.append(f"## {section or 'All stages'}\n\n{table(['setting', 'default', 'allowed', 'meaning'], rows)}")
        if section == "train":
            parts.append(_RUNS + table(["run", "settings"], ([code(name), shown(run)] for name, run in runs.items())))
    return "\n".join(parts)


def stages() -> str:
    """Return the page of all stages."""
    graph = "".join(f"  {before} --> {after}\n" for before, after in arrows())
    bodies = YAML(typ="safe", pure=True).load(ROOT / "dvc.yaml")["stages"]
    rows = ([code(name), stage.get("do", stage)["desc"]] for name, stage in bodies.items())
    return f"{_STAGES}\n```mermaid\nflowchart TD\n{graph}```\n\n{table(['stage', 'does'], rows)}"


def arrows() -> list[tuple[str, str]]:
    """Return the arrows between stages, without those that others imply; vocab@char and the like are one stage."""
    command = ["dvc", "dag", "--md"]
    graph = subprocess.run(
        command, cwd=ROOT, env=environment_of_python(), capture_output=True, text=True, check=True
    ).stdout
    names = dict(re.findall(r"(node\d+)\[\"([^\"@]+)", graph))
    edges = {(names[before], names[after]) for before, after in re.findall(r"(node\d+)-->(node\d+)", graph)}
    after: dict[str, set[str]] = {}  # all stages that come after a stage
    for name in TopologicalSorter({name: [b for a, b in edges if a == name] for name in names.values()}).static_order():
        after[name] = {later for a, b in edges if a == name for later in (b, *after[b])}
    return sorted((a, b) for a, b in edges if not any(b in after[c] for d, c in edges if d == a))


def commands() -> str:
    """Return the page of commands and exit codes."""
    targets = re.findall(r"^([a-z-]+):.*?## (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    parts = [_MAKE + table(["target", "does"], ([code(f"make {name}"), does] for name, does in targets)), _SCRIPTS]
    sys.path.insert(0, str(ROOT / "stages"))
    for path in sorted((ROOT / "stages").glob("*.py")):
        if path.stem == "harness":
            continue
        spec = importlib.util.spec_from_file_location(f"stage_{path.stem}", path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        command: click.Command = module.main
        options = [parameter for parameter in command.params if parameter.name != "root"]
        parts.append(f"### `python stages/{path.name}`\n\n{' '.join((command.help or '').split())}\n")
        if options:
            parts.append(table(["option", "meaning"], map(option, options)))
    kinds = sorted(SeqlmError.__subclasses__(), key=lambda kind: kind.exit_code)
    rows = ([str(kind.exit_code), (kind.__doc__ or "").partition("\n")[0]] for kind in kinds)
    return "\n".join([*parts, _CODES + table(["code", "meaning"], rows)])


def option(parameter: click.Parameter) -> list[str]:
    """Return the row of an option or argument."""
    if not isinstance(parameter, click.Option):
        return [code(parameter.human_readable_name), f"default: {code(parameter.default)}"]
    choices = f" {code(', '.join(parameter.type.choices))}" if isinstance(parameter.type, click.Choice) else ""
    return [code(", ".join(parameter.opts)), f"{parameter.help}{choices}"]


def tables() -> str:
    """Return the page of tables with the columns of the main table as the code describes them."""
    rows = table(["column", "meaning"], ([code(column.name), column.meaning] for column in COLUMNS))
    return _COLUMNS.sub(lambda _: rows, (REFERENCE / "tables.md").read_text(encoding="utf-8"))


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    made = {"settings": settings(), "stages": stages(), "commands": commands(), "tables": tables()}
    note = "<!-- Written by tools/doc_reference.py: change the code, then run it. -->\n\n"
    return {REFERENCE / f"{name}.md": text if name == "tables" else note + text for name, text in made.items()}


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are out of date; return the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = {
        path: text for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run `python tools/doc_reference.py`")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
