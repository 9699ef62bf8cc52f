"""A text of one repeated word has a figure without fitted lines."""

from pathlib import Path

import pandas as pd

from seqlm.ngrams.corpus_stream import join_splits
from seqlm.ngrams.counts.counting import Chunking
from seqlm.ngrams.statistics import describe
from seqlm.report.figures.ngrams import zipf_figure
from seqlm.report.figures.style import svg_text
from seqlm.vocab.corpus import SPLITS, build_corpus, load_corpus


def test_orders_without_a_fit_have_no_line(tmp_path: Path) -> None:
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in paths.values():
        path.write_text("sea sea sea\n" * 5)
    build_corpus(paths, tmp_path, "word", "", 0, [])
    tables = describe(join_splits(load_corpus(tmp_path), Chunking(2**30, tmp_path)), 2, 3)
    fits, ranks = tables["summary"]["zipf"], tables["zipf"]
    assert fits == {}
    assert ranks["n"].tolist() == [1, 2, 3]
    drawn = svg_text(zipf_figure(ranks, fits))
    assert "trigram" in drawn
    assert "slope" not in drawn


def test_orders_with_and_without_a_fit_share_a_figure() -> None:
    ranks = pd.DataFrame({"n": [1, 2, 2], "rank": [1, 1, 2], "count": [9, 4, 2]})
    fit = {"max_rank": 2, "alpha_least_squares": 1.0, "intercept": 1.4}
    drawn = svg_text(zipf_figure(ranks, {2: fit}))
    assert "bigram, slope -1.00" in drawn
    assert "unigram, slope" not in drawn
