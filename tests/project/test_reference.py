"""The reference in docs/ is what the code says."""

import csv
import re
from pathlib import Path

import pytest

import doc_reference
from default_params import skip_if_experiment_is_applied
from smoke import ROOT


def test_the_reference_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    skip_if_experiment_is_applied()
    assert doc_reference.main(["--check"]) == 0, capsys.readouterr().out


def documented_columns() -> dict[str, list[str]]:
    """Return the columns of each table that tables.md describes; none for one that refers to another."""
    found = {}
    text = (doc_reference.REFERENCE / "tables.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `(reports/\S+\.csv)`$", text, flags=re.MULTILINE)
    for path, part in zip(parts[1::2], parts[2::2], strict=True):
        table = part.partition("| column | meaning |\n")[2].partition("\n\n")[0]
        found[path] = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    return found


def columns(path: Path) -> list[str]:
    """Return the columns of a table; those of the k-step predictions as one."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(re.sub(r"^ahead_\d+$", "ahead_K", column) for column in next(csv.reader(file))))


def test_tables_have_the_documented_columns() -> None:
    found: dict[str, list[str]] = {}
    for path in ROOT.glob("reports/**/*.csv"):
        name = path.relative_to(ROOT).as_posix()
        name = re.sub(r"/(char|word|subword)/", "/KIND/", re.sub(r"/train/[^/]+/", "/train/RUN/", name))
        assert found.setdefault(name, columns(path)) == columns(path), name
    documented = documented_columns()
    documented["reports/train/RUN/history.csv"] = documented["reports/evaluate/history.csv"]
    assert found == documented
