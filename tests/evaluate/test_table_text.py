"""The main table as text."""

import pandas as pd

from seqlm.evaluate.table_text import describe_share, describe_shrunk, table_text

ROW = {
    "model": "lstm", "train_bits": 1.0, "val_bits": 1.5, "test_bits": 2.0, "low": 1.9, "high": 2.1,
    "test_perplexity": 4.0, "adapts": False, "against_next": None,
}  # fmt: skip


def test_a_table_says_how_much_of_the_text_was_scored_where_it_was_not_all() -> None:
    shares = {"train": 0.00375, "val": 0.03, "test": 1.0}
    measures = {
        "char-uniform": {split: {"scored_share": share} for split, share in shares.items()},
        "lstm+dynamic": {split: {"scored_share": shares[split]} for split in ("val", "test")},
    }
    share = describe_share(measures)
    assert share == "scored: 0.38% of train, 3.00% of val, 100.00% of test, in passages spread evenly over each"
    assert table_text(pd.DataFrame([ROW]), share).endswith(f"\n{share}\n")


def test_nothing_is_said_where_everything_was_scored() -> None:
    measures = {"char-uniform": {split: {"scored_share": 1.0} for split in ("train", "val", "test", "fitted")}}
    assert describe_share(measures) == ""
    assert "scored" not in table_text(pd.DataFrame([ROW]), describe_share(measures))


def test_a_table_says_which_runs_had_smaller_minibatches_than_their_settings_ask_for() -> None:
    summaries = {
        "lstm": {"batch_size": 14, "num_steps": 64, "shrunk": True},
        "small": {"batch_size": 32, "num_steps": 35, "shrunk": False},
    }
    shrunk = describe_shrunk(summaries)
    assert shrunk.endswith(": lstm 14 x 64")
    assert table_text(pd.DataFrame([ROW]), "", shrunk).endswith(f"text\n{shrunk}\n")
    assert describe_shrunk({"small": summaries["small"]}) == ""
