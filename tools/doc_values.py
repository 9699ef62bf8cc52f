"""Keep values and code in README.md and docs/ current: `python tools/doc_values.py --write` after a `dvc repro`.

A value is a link to the file that holds it. The title of the link says where in the file it is, and in which of
Python's formats it is written:

    [4.27](reports/evaluate/table.csv "model=char-kneser-ney-6 test_perplexity .2f")
    [0.068](reports/sine/summary.json "loss.epoch_1 .3f")

In a CSV file, each COLUMN=VALUE keeps the rows that have this value, and the next word is the column to show;
mean(COLUMN) is the mean over all these rows. A value with spaces is written with underscores. In a JSON file, keys are
joined by dots.

A whole table is between two comments that name its file, the rows to keep and the columns. A column may have another
heading, after =:

    <!-- table: reports/book/printed.csv section=8.1 quantity,book_prints,here,met=reproduced -->
    <!-- end -->

Code is between two comments that name its file and the function, without its docstring; for a part of a function, also
the beginnings of the first and the last line:

    <!-- code: src/seqlm/sine/study.py windows -->
    <!-- code: src/seqlm/networks/scratch.py ScratchRNN._run | hiddens[0] | logits = -->
    <!-- end -->
"""

import ast
import io
import json
import re
import sys
import textwrap
from functools import partial
from pathlib import Path
from statistics import fmean

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
_VALUE = re.compile(r"\[([^\]\n]*)\]\((?P<path>[^)\s]+\.(?:csv|json))\s+\"(?P<where>[^\"\n]+)\"\)")
_TABLE = re.compile(r"(<!-- table: (?P<path>\S+) (?P<where>.+?) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
_CODE = re.compile(r"(<!-- code: (?P<path>\S+) (?P<where>.+?) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


class NotThereError(Exception):
    """A value or code that the docs name does not exist."""


def pages(root: Path) -> list[Path]:
    """Return the pages that may hold values and code."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def filled(page: Path) -> str:
    """Return a page's text with the values and the code of today. Raises NotThereError."""
    text = page.read_text(encoding="utf-8")
    text = _VALUE.sub(partial(_with_value, page.parent), text)
    text = _TABLE.sub(partial(_with_table, page.parent), text)
    return _CODE.sub(partial(_with_code, page.parent), text)


def changes(page: Path) -> list[str]:
    """Return the lines that a page should have and lacks. Raises NotThereError."""
    old, new = page.read_text(encoding="utf-8"), filled(page)
    lines = [line for line in new.splitlines() if line not in old.splitlines()]
    return lines if lines or new == old else ["it has lines too many"]


def _with_value(folder: Path, found: re.Match[str]) -> str:
    path, (where, form) = folder / found["path"], found["where"].rsplit(" ", 1)
    value = _of_json(path, where) if path.suffix == ".json" else _of_csv(path, where)
    # Everything around the value stays, line breaks too.
    return f"[{format(value, form)}]" + found[0].partition("]")[2]


def _of_json(path: Path, keys: str) -> float:
    value = json.loads(_read(path))
    for key in keys.split("."):
        if key not in value:
            raise NotThereError(f"{path}: no {keys}")
        value = value[key]
    return float(value)


def _of_csv(path: Path, where: str) -> float:
    *choices, column = where.split(" ")
    mean = re.fullmatch(r"mean\((.*)\)", column)
    rows, name = _rows(path, choices), mean[1] if mean else column
    if len(rows) != 1 and not mean:
        raise NotThereError(f"{path}: {len(rows)} rows have {' '.join(choices)}")
    if name not in rows:
        raise NotThereError(f"{path}: no column {name}")
    return fmean(rows[name].astype(float))


def _with_table(folder: Path, found: re.Match[str]) -> str:
    *choices, columns = found["where"].split(" ")
    names = {column.partition("=")[0]: column.rpartition("=")[2] for column in columns.split(",")}
    rows = _rows(folder / found["path"], choices)[list(names)].replace({"True": "yes", "False": "no"})
    lines = [[name.replace("_", " ") for name in names.values()], ["---"] * len(names)]
    lines += [[cell.replace("|", r"\|").replace("<", r"\<") for cell in row] for row in rows.to_numpy()]
    return found[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _with_code(folder: Path, found: re.Match[str]) -> str:
    name, *ends = found["where"].split(" | ")
    lines = _code(folder / found["path"], name)
    if ends:
        places = [_place_of(lines, beginning, found["path"]) for beginning in ends]
        lines = lines[places[0] : places[-1] + 1]
    code = textwrap.dedent("\n".join(lines))
    shown = found["path"].replace("../", "")
    return f"{found[1]}```python\n{code}\n```\n<sub>Excerpt from [{shown}]({found['path']})</sub>\n"


def _code(path: Path, name: str) -> list[str]:
    """Return the lines of a function, method or class, without its docstring."""
    text = _read(path)
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        inner = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part]
        if not inner:
            raise NotThereError(f"{path}: no {name}")
        node = inner[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    lines, body = text.splitlines(), node.body
    kept = lines[node.lineno - 1 : node.end_lineno]
    if ast.get_docstring(node) is not None:
        first, last = body[0].lineno - node.lineno, (body[0].end_lineno or 0) - node.lineno
        kept = kept[:first] + [line for index, line in enumerate(kept[last + 1 :]) if index or line.strip()]
    return kept


def _place_of(lines: list[str], beginning: str, path: str) -> int:
    for place, line in enumerate(lines):
        if line.strip().startswith(beginning):
            return place
    raise NotThereError(f"{path}: no line begins with {beginning!r}")


def _rows(path: Path, choices: list[str]) -> pd.DataFrame:
    """Return the rows that have each COLUMN=VALUE, as text; at least one."""
    rows = pd.read_csv(io.StringIO(_read(path)), dtype=str, keep_default_na=False)
    for column, value in (choice.split("=", 1) for choice in choices):
        rows = rows[rows[column].str.replace(" ", "_") == value]
    if rows.empty:
        raise NotThereError(f"{path}: no row has {' '.join(choices)}")
    return rows


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotThereError(f"{path}: {error.strerror}") from error


def main(root: Path, arguments: list[str]) -> int:
    """Print the lines that are out of date, or write them; return 1 if some are and were not written, else 0."""
    if arguments not in ([], ["--write"]):
        print(__doc__)
        return 2
    code = 0
    for page in pages(root):
        try:
            lines = changes(page)
        except NotThereError as error:
            print(f"{page.relative_to(root)}: {error}")
            code = 1
            continue
        for line in lines:
            print(f"{page.relative_to(root)}: {line}")
        if lines and arguments:
            page.write_text(filled(page), encoding="utf-8", newline="\n")
        elif lines:
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(ROOT, sys.argv[1:]))
