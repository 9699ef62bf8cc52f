"""Keep the values in README.md and docs/ those of reports/: `python tools/doc_values.py --write` after a `dvc repro`.

A value is a link to the file that holds it; the link's title says where it stands there, and
in which of Python's formats it is written:

    [4.27](reports/evaluate/table.csv "model=char-kneser-ney-6 test_perplexity .2f")
    [0.068](reports/sine/summary.json "loss.epoch_1 .3f")

In a CSV file, each COLUMN=VALUE leaves the rows that have it, and the next word is the column
that is shown; mean(COLUMN) is the mean over all rows left. In a JSON file, keys are joined by
dots. A whole table stands between two comments that name its file, the rows that are left and
the columns:

    <!-- table: reports/book/parity.csv section=8.1 quantity,book,here -->
    <!-- end -->
"""

import csv
import json
import re
import sys
from functools import partial
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
_VALUE = re.compile(r"\[([^\]\n]*)\]\((?P<path>[^)\s]+\.(?:csv|json))\s+\"(?P<where>[^\"\n]+)\"\)")
_TABLE = re.compile(r"(<!-- table: (?P<path>\S+) (?P<where>.+?) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


class NotThereError(Exception):
    """A value that the docs name is not in the reports."""


def pages(root: Path) -> list[Path]:
    """Return the pages that hold values."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def filled(page: Path) -> str:
    """Return a page's text with the values that the reports have now. Raises NotThereError."""
    text = page.read_text(encoding="utf-8")
    text = _VALUE.sub(partial(_with_value, page.parent), text)
    return _TABLE.sub(partial(_with_table, page.parent), text)


def changes(page: Path) -> list[str]:
    """Return the lines that a page should have and has not. Raises NotThereError."""
    old, new = page.read_text(encoding="utf-8"), filled(page)
    lines = [line for line in new.splitlines() if line not in old.splitlines()]
    return lines if lines or new == old else ["a table has lines too many"]


def _with_value(folder: Path, found: re.Match[str]) -> str:
    path, (where, form) = folder / found["path"], found["where"].rsplit(" ", 1)
    value = _of_json(path, where) if path.suffix == ".json" else _of_csv(path, where)
    # What stands around the value stays, line breaks too.
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
    rows = _rows(path, choices)
    if len(rows) != 1 and not mean:
        raise NotThereError(f"{path}: {len(rows)} rows have {' '.join(choices)}")
    name = mean[1] if mean else column
    if name not in rows[0]:
        raise NotThereError(f"{path}: no column {name}")
    return fmean(float(row[name]) for row in rows)


def _with_table(folder: Path, found: re.Match[str]) -> str:
    *choices, columns = found["where"].split(" ")
    names = columns.split(",")
    lines = [names, ["---"] * len(names)]
    lines += [[row[name].replace("|", r"\|").replace("<", r"\<") for name in names] for row in
              _rows(folder / found["path"], choices)]  # fmt: skip
    return found[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _rows(path: Path, choices: list[str]) -> list[dict[str, str]]:
    """Return the rows that have each COLUMN=VALUE; at least one."""
    wanted = [choice.split("=", 1) for choice in choices]
    rows = list(csv.DictReader(_read(path).splitlines()))
    chosen = [row for row in rows if all(row.get(column) == value for column, value in wanted)]
    if not chosen:
        raise NotThereError(f"{path}: no row has {' '.join(choices)}")
    return chosen


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotThereError(f"{path}: {error.strerror}") from error


def main(root: Path, arguments: list[str]) -> int:
    """Say what is not as the reports have it, or write it; return 0 if nothing is or was to be done, else 1."""
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
