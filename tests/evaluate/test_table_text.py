"""The main table as text."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from made_scores import network, score, scored_text
from seqlm.core.files import read_csv, write_csv
from seqlm.evaluate.ranking import main_table, rank_models
from seqlm.evaluate.table_text import describe_reduced_batches, describe_share, table_text
from seqlm.score.store import Score

LSTM = score(network("lstm"), np.linspace(1, 2, 100))
DYNAMIC = score(network("lstm").as_dynamic(), np.linspace(0.5, 1.5, 100))
NEVER = score(network("never"), np.full(100, np.inf))


def table(*scores: Score) -> pd.DataFrame:
    texts = dict.fromkeys(("train", "val", "test"), scored_text(100))
    return main_table(rank_models(scores, {"char": texts}, seed=0))


def test_the_table_by_hand() -> None:
    # 1.5 nats on average are 2.164 bits and a perplexity of 4.48, 1.0 nats are 1.443 bits and 2.72.
    lines = re.sub(r"\d\.\d{3}-\d\.\d{3}", "(interval) ", table_text(table(LSTM, DYNAMIC, NEVER))).splitlines()
    assert lines[:4] == [
        "model           train    val      test  95 % interval  against next  perplexity",
        "lstm+dynamic *      -  1.443     1.443    (interval)   better              2.72",
        "lstm            2.164  2.164     2.164    (interval)                       4.48",
        "never               -      -  infinite                                 infinite",
    ]
    assert lines[-1] == "*: dynamic: keeps learning from the test text after predicting it"


def test_dynamic_models_are_explained_only_if_there_are_any() -> None:
    text = table_text(table(LSTM))
    assert "dynamic" not in text
    assert "not that of the seed" in text


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
