"""The main table: its list of columns, which feeds table.csv, the terminal and the page, and its text."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from made_scores import network, score, scored_text
from seqlm.core.files import read_csv, write_csv
from seqlm.evaluate.columns import (
    COLUMNS,
    Column,
    describe_reduced_batches,
    describe_share,
    main_table,
    table_text,
)
from seqlm.evaluate.ranking import rank_models
from seqlm.score.store import Score

LSTM = score(network("lstm"), np.linspace(1, 2, 100))
DYNAMIC = score(network("lstm").as_dynamic(), np.linspace(0.5, 1.5, 100))
NEVER = score(network("never"), np.full(100, np.inf))


def table(*scores: Score) -> pd.DataFrame:
    texts = dict.fromkeys(("train", "val", "test"), scored_text(100))
    results, _ = rank_models(scores, {"char": texts}, None)
    return main_table(results)


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
    made = table(score(network("m", members=("a", "b")), np.ones(100)))
    assert made[new_column.name].tolist() == [2]
    heading, row = table_text(made).splitlines()[:2]
    assert heading.endswith("  members")
    assert row.endswith("        2")


def test_names_and_meanings() -> None:
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names))
    assert all(column.meaning.endswith(".") for column in COLUMNS)


def test_the_table_by_hand() -> None:
    # 1.5 nats on average are 2.164 bits and a perplexity of 4.48, 1.0 nats are 1.443 bits and 2.72. Five blocks of 20
    # tokens differ by 0.202 nats each, so their deviation is 0.202 sqrt(2.5) / ln 2 = 0.461 bits; with 4 degrees of
    # freedom, half of the interval is 2.776 x 0.461 / sqrt(5) = 0.572.
    lines = table_text(table(LSTM, DYNAMIC, NEVER)).splitlines()
    assert lines[:4] == [
        "model           train     val      test    95 %        to best        to next  perplexity",
        "lstm+dynamic *      -  ^1.443     1.443  ±0.572                 -0.721 ±0.000        2.72",
        "lstm            2.164   2.164     2.164  ±0.572  +0.721 ±0.000                       4.48",
        "never               -       -  infinite                                          infinite",
    ]
    assert lines[-2:] == [
        "^: settings, weights or the epoch of the model were chosen on val, so it looks better there than it is",
        "*: dynamic: keeps learning from the test text after predicting it",
    ]


def test_models_that_are_not_told_apart_are_marked() -> None:
    shuffled = np.random.default_rng(0).permutation(LSTM.nats["test"])
    text = table_text(table(LSTM, score(network("other"), shuffled)))
    assert len(re.findall(r"~ [+-]0.000 ±\d", text)) == 2


def test_dynamic_models_are_explained_only_if_there_are_any() -> None:
    text = table_text(table(LSTM))
    assert "dynamic" not in text
    assert "chosen on val" not in text
    assert "not of other texts or seeds" in text


def test_the_table_is_the_same_after_it_was_stored(tmp_path: Path) -> None:
    made = table(LSTM, DYNAMIC, NEVER)
    write_csv(tmp_path / "table.csv", made)
    assert table_text(read_csv(tmp_path / "table.csv")) == table_text(made)


def test_the_scored_share_is_stated_if_it_is_not_all() -> None:
    shares = {"train": 0.00375, "val": 0.03, "test": 1.0}
    metrics = {
        "char-uniform": {split: {"scored_share": share} for split, share in shares.items()},
        "lstm+dynamic": {split: {"scored_share": shares[split]} for split in ("val", "test")},
    }
    share = describe_share(metrics)
    assert share == "scored: 0.38% of train, 3.00% of val, 100.00% of test, in evenly spaced passages"
    assert table_text(table(LSTM), share).endswith(f"\n{share}\n")
    all_scored = {"char-uniform": {split: {"scored_share": 1.0} for split in (*shares, "train_subset")}}
    assert describe_share(all_scored) == ""
    assert table_text(table(LSTM), "") == table_text(table(LSTM))


def test_runs_with_smaller_minibatches_than_their_settings_are_named() -> None:
    summaries = {
        "lstm": {"batch_size": 14, "num_steps": 64, "batch_reduced": True},
        "small": {"batch_size": 32, "num_steps": 35, "batch_reduced": False},
    }
    assert describe_reduced_batches(summaries).endswith(": lstm 14 x 64")
    assert describe_reduced_batches({"small": summaries["small"]}) == ""
