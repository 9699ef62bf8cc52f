"""Keep values, tables and code in README.md and docs/ current: `python tools/doc_values.py` after a `dvc repro`.

A value is a link to the file that holds it, and to the place in this file, with one of Python's formats:

    [4.27](reports/evaluate/table.csv#model=char-kneser-ney-6&test_perplexity:.2f)
    [0.068](reports/sine/summary.json#loss.epoch_1:.3f)

In a CSV file, COLUMN=VALUE keeps the rows that have this value, with _ for a space, and the last word is the column to
show, or mean(COLUMN). A table or an excerpt is written between two comments. A column may get another heading, after =,
and a part of a function is named by the beginnings of its first and last line:

    <!-- table: reports/book/printed.csv section=8.1 count_noun,book_prints,here,met=reproduced -->
    <!-- code: src/seqlm/networks/scratch.py ScratchRNN._run | hiddens[0] | logits = -->
    <!-- end -->
"""

import ast
import json
import re
import textwrap
from functools import reduce
from pathlib import Path
from statistics import fmean

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_VALUE = re.compile(r"\[[^]\n]*\]\((?P<path>[^)\s#]+\.(?:csv|json))#(?P<where>(?:[^()\s]|\(\w+\))+):(?P<form>[^:)]+)\)")
_BLOCK = re.compile(r"(<!-- (?P<kind>table|code): (?P<what>.+?) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: Path) -> str:
    """Return a page's text with the values, tables and excerpts of today."""

    def value(found: re.Match[str]) -> str:
        where = _in_json if found["path"].endswith(".json") else _in_csv
        number = where(page.parent / found["path"], found["where"])
        return f"[{format(number, found['form'])}]{found[0].partition(']')[2]}"

    def block(found: re.Match[str]) -> str:
        return found[1] + {"table": table, "code": excerpt}[found["kind"]](page.parent, found["what"])

    return _BLOCK.sub(block, _VALUE.sub(value, page.read_text(encoding="utf-8")))


def markdown_table(rows: list[list[str]]) -> str:
    """Return a Markdown table of text; the first row is the heading."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join("| " + " | ".join(re.sub(r"([|<])", r"\\\1", cell) for cell in row) + " |\n" for row in rows)


def _in_json(path: Path, keys: str) -> float:
    return float(reduce(lambda value, key: value[key], keys.split("."), json.loads(path.read_text(encoding="utf-8"))))


def _in_csv(path: Path, where: str) -> float:
    *choices, column = where.split("&")
    mean = re.fullmatch(r"mean\((\w+)\)", column)
    values = rows_of(path, choices)[mean[1] if mean else column].astype(float)
    if len(values) != 1 and not mean:
        raise LookupError(f"{path}: {len(values)} rows have {' '.join(choices)}")
    return fmean(values)


def rows_of(path: Path, choices: list[str]) -> pd.DataFrame:
    """Return the rows that have each COLUMN=VALUE, as text; at least one."""
    # A benchmark's first line may be a comment: the commit and the machine.
    rows = pd.read_csv(path, dtype=str, keep_default_na=False, comment="#")
    for column, value in (choice.split("=", 1) for choice in choices):
        rows = rows[rows[column].str.replace(" ", "_") == value]
    if rows.empty:
        raise LookupError(f"{path}: no row has {' '.join(choices)}")
    return rows


def table(folder: Path, what: str) -> str:
    """Return a table of a CSV file as Markdown."""
    path, *choices, columns = what.split(" ")
    names = {column.partition("=")[0]: column.rpartition("=")[2].replace("_", " ") for column in columns.split(",")}
    rows = rows_of(folder / path, choices)[list(names)].replace({"True": "yes", "False": "no"})
    return markdown_table([list(names.values()), *rows.to_numpy().tolist()])


def excerpt(folder: Path, what: str) -> str:
    """Return the lines of a function, method or class without its docstring, or some of them."""
    place, *ends = what.split(" | ")
    path, name = place.split(" ")
    text = (folder / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = next(child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part)
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    if ast.get_docstring(node) is not None:
        doc = node.body[0]
        first, after = doc.lineno - node.lineno, (doc.end_lineno or 0) - node.lineno + 1
        lines[first : after + (not lines[after].strip())] = []
    if ends:
        places = [next(i for i, line in enumerate(lines) if line.strip().startswith(end)) for end in ends]
        lines = lines[places[0] : places[-1] + 1]
    shown = textwrap.dedent("\n".join(lines))
    return f"```python\n{shown}\n```\n<sub>Excerpt from [{path.replace('../', '')}]({path})</sub>\n"


if __name__ == "__main__":
    for page in PAGES:
        if (text := filled(page)) != page.read_text(encoding="utf-8"):
            print(page.relative_to(ROOT))
            page.write_text(text, encoding="utf-8", newline="\n")
