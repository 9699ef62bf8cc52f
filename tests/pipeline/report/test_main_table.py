"""The main table as text, and how its cells are formatted."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from made_scores import network, ngram, score, scored_text
from seqlm.core.files import write_csv, write_json
from seqlm.core.layout import Layout
from seqlm.pipeline.evaluate.main_table import main_table
from seqlm.pipeline.report.main_table import CELLS, table_text
from seqlm.pipeline.report.page import build_summary, scored_share
from seqlm.pipeline.score.scores import Scores
from seqlm.vocab.corpus import SPLITS

LSTM = network("lstm")
STEADY = score(LSTM, np.linspace(1, 2, 100))
ALL = {split: {"scored_share": 1.0} for split in SPLITS}


def table(*scores: Scores) -> pd.DataFrame:
    return main_table(scores, {"char": dict.fromkeys(SPLITS, scored_text(100))}, None)


def test_the_table_by_hand() -> None:
    # 1.5 nats on average are 2.164 bits and a perplexity of 4.48, 1.0 nats are 1.443 bits and 2.72. Five blocks of 20
    # tokens differ by 0.202 nats each, so their deviation is 0.202 sqrt(2.5) / ln 2 = 0.461 bits; with 5 // 2 degrees
    # of freedom, half of the interval is 4.303 x sqrt(2) x 0.461 / sqrt(5) = 1.254.
    dynamic = score(LSTM.as_dynamic(), np.linspace(0.5, 1.5, 100))
    assert table_text(table(STEADY, dynamic, score(ngram("never"), np.full(100, np.inf)))).splitlines() == [
        "model             test   95 %        to best    val  train  perplexity",
        "lstm              2.16  ±1.25                  2.16   2.16        4.48",
        "never         infinite                            -      -    infinite",
        "still learning: after predicting a piece of the test text, these models learn from it:",
        "lstm+dynamic      1.44  ±1.25  −0.721 ±0.000  ^1.44      -        2.72",
    ]
    # Differences that are not significant have a mark.
    shuffled = np.random.default_rng(0).permutation(STEADY.nll["test"])
    text = table_text(table(STEADY, score(network("other"), shuffled)))
    assert len(re.findall(r"~ [+−]0.000 ±\d", text)) == 1
    assert "still learning" not in text


def test_the_perplexity_of_a_run_that_exploded_is_short() -> None:
    rows = [SimpleNamespace(test_perplexity=value) for value in (4.481, 9.1e90, None)]
    assert list(map(CELLS["perplexity"], rows)) == ["4.48", "9.1e+90", "infinite"]


def summary(folder: Path, rows: pd.DataFrame, metrics: dict, *warnings: str) -> str:
    layout = Layout(folder)
    write_csv(layout.reports("evaluate", "table.csv"), rows)
    write_json(layout.reports("evaluate", "metrics.json"), {"uniform": metrics, "lstm+dynamic": {}})
    write_json(layout.corpus_record, {"fallback": False})
    write_json(layout.reports("preprocess", "summary.json"), {"warnings": warnings})
    return build_summary(layout)


def test_the_summary_explains_what_it_has(tmp_path: Path) -> None:
    text = summary(tmp_path, table(STEADY), ALL)
    assert text.startswith("bits per character (lower is better)")
    assert max(map(len, text.splitlines())) <= 100
    assert "chosen on the validation set" not in text
    assert text.endswith("calculated to be 5 %\n")
    shares = {"train": 0.00375, "val": 0.03, "test": 1.0}
    shares_of = {split: {"scored_share": share} for split, share in shares.items()}
    text = summary(tmp_path, table(STEADY, score(LSTM.as_dynamic(), STEADY.nll["test"])), shares_of, "too short")
    assert text.startswith("Warning: too short.\n\nbits per character")
    assert "\n^: settings, weights or the epoch were chosen on the validation set" in text
    share = "scored: 0.38% of train, 3.00% of val, 100.00% of test, in evenly spaced passages"
    assert scored_share(Layout(tmp_path)) == share
    assert text.endswith(f"\n{share}\n")
