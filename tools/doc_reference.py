"""Write what the docs take from code and results: `python tools/doc_reference.py`.

`tools/doc_values.py` writes values, tables and excerpts. Here are the parts of the reference:

    <!-- reference: command score -->
    <!-- reference: python seqlm.fit_ngram -->
    <!-- end -->
"""

import ast
import inspect
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name

import click
from ruamel.yaml import YAML

import doc_values
from doc_values import ROOT, Writers, markdown_table
from seqlm.command import main
from seqlm.core.errors import SeqlmError
from seqlm.pipeline.evaluate.main_table import Row
from smoke import environment_of_python

_SETTING = re.compile(r"( *)([\w-]+):(.*?)(?:\s+#\s*(.*))?")


def settings(_: str) -> str:
    """Return the settings of each section of params.yaml but `runs`, with values and comments."""
    rows: list[list[str]] = []
    parents: list[tuple[int, str]] = []
    for line in (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines():
        if match := _SETTING.fullmatch(line):
            parents = [*(parent for parent in parents if parent[0] < len(match[1])), (len(match[1]), match[2])]
            rows.append([".".join(key for _, key in parents), match[3].strip(), match[4] or ""])
        elif item := re.fullmatch(" +- (.*)", line):
            rows[-1][1] = f"{rows[-1][1]}, {item[1]}".removeprefix(", ")
    sections: dict[str, list[list[str]]] = {"All stages": []}
    for name, value, comment in rows:
        section = name.partition(".")[0] if "." in name else "All stages"
        if section != "runs" and (value or (comment and "." in name)):
            sections.setdefault(section, []).append([f"`{name}`", f"`{value}`" if value else "", comment])
    head = ["setting", "default", "meaning"]
    return "\n".join(f"## {section}\n\n{markdown_table([head, *rows])}" for section, rows in sections.items())


def stages(_: str) -> str:
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


def command(name: str) -> str:
    """Return the help of a command of seqlm."""
    found = main.commands[name]
    context, named = click.Context(found), [item for item in found.params if isinstance(item, click.Argument)]
    arguments = " ".join(argument.make_metavar(context) for argument in named)
    options = [option for option in found.params if isinstance(option, click.Option)]
    listed = "".join(f"- `{'`, `'.join(option.opts)}`: {option.help}\n" for option in options).replace("<", "&lt;")
    return f"`seqlm {name} {arguments}`\n\n{inspect.cleandoc(found.help or '')}\n\n{listed}"


def errors(_: str) -> str:
    """Return the exit codes."""
    kinds = sorted(SeqlmError.__subclasses__(), key=lambda kind: kind.exit_code)
    rows = [[str(kind.exit_code), (kind.__doc__ or "").partition("\n")[0]] for kind in kinds]
    return markdown_table([["code", "meaning"], *rows])


def columns(_: str) -> str:
    """Return the columns of the main table."""
    return "".join(f"- `{name}`: {' '.join(meaning.split())}\n" for name, meaning in documented_fields(Row))


def documented_fields(found: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that have docstrings, each with its own."""
    body = ast.parse(inspect.getsource(found)).body[0].body  # type: ignore[attr-defined]
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            yield ast.unparse(field.target), ast.literal_eval(after.value)


def python(name: str) -> str:
    """Return the signature of a function or method, its docstring or that of a class, and those of a class's fields."""
    found, signature, fields = resolve_name(name), "", ""
    if isinstance(found, type):
        fields = "".join(f"- `{field}`: {meaning}\n" for field, meaning in documented_fields(found))
    elif callable(found):
        given = inspect.signature(found).parameters.values()
        shown = [parameter.replace(annotation=parameter.empty) for parameter in given if parameter.name != "self"]
        signature = f"```text\n{found.__name__}{inspect.Signature(shown)}\n```\n\n"
    doc = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", inspect.getdoc(found) or "").replace("``", "`")
    return f"{signature}{doc}\n\n{fields}".rstrip() + "\n"


KINDS = {function.__name__: function for function in (settings, stages, command, errors, columns, python)}


def reference(_: Path, what: str) -> str:
    """Return a part of the reference: its kind, and what it is of."""
    kind, _separator, rest = what.partition(" ")
    return KINDS[kind](rest)


WRITERS: Writers = {**doc_values.WRITERS, "reference": reference}

if __name__ == "__main__":
    doc_values.write(WRITERS)
