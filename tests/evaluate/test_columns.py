"""The list of columns, which feeds table.csv, the terminal and the page."""

from collections.abc import Iterator

import numpy as np
import pytest

from made_scores import network, score, scored_text
from seqlm.evaluate.columns import COLUMNS, Column
from seqlm.evaluate.ranking import main_table, rank_models
from seqlm.evaluate.table_text import table_text


@pytest.mark.parametrize(
    ("dtype", "value", "shown", "missing"),
    [(float, 1.23456, "1.235", "-"), (int, 12345, "12,345", "-"), (str, "x", "x", ""), (bool, True, "True", "")],
)
def test_a_column_shows_values_of_its_type(dtype: type, value: object, shown: str, missing: str) -> None:
    column = Column("new", "A new column.", lambda _: value, dtype, "new")
    assert [column.cell({"new": cell}) for cell in (value, None, float("nan"))] == [shown, missing, missing]
    assert column.is_number == (dtype in (int, float))


@pytest.fixture
def new_column() -> Iterator[Column]:
    """Add a column: the number of members of a model."""
    column = Column("num_members", "Members of a mixture.", lambda r: len(r.score.info.members), int, "members")
    COLUMNS.append(column)
    yield column
    COLUMNS.remove(column)


def test_a_new_column_takes_one_entry(new_column: Column) -> None:
    made = score(network("m", members=("a", "b")), np.ones(100))
    texts = dict.fromkeys(("train", "val", "test"), scored_text(100))
    table = main_table(rank_models([made], {"char": texts}, seed=0))
    assert table[new_column.name].tolist() == [2]
    heading, row = table_text(table).splitlines()[:2]
    assert heading.endswith("  members")
    assert row.endswith("        2")


def test_names_and_meanings() -> None:
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names))
    assert all(column.meaning.endswith(".") for column in COLUMNS)
