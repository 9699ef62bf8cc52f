"""Tables in Markdown have as many cells in every row as in their head."""

import re
from pathlib import Path

import pytest

from smoke import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/**/*.md")])


def tables_of(page: Path) -> list[list[str]]:
    """Return each table's rows; a line between them ends a table."""
    tables: list[list[str]] = [[]]
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    return [table for table in tables if table]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_has_the_cells_of_its_table(page: Path) -> None:
    for table in tables_of(page):
        cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in table]
        assert set(cells) == {cells[0]}, [line for line, count in zip(table, cells, strict=True) if count != cells[0]]
