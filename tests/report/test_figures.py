"""Figures, from small tables."""

from pathlib import Path

import pandas as pd
import pytest

from seqlm.ngrams.corpus_stream import join_splits
from seqlm.ngrams.counts.counting import Chunking
from seqlm.ngrams.statistics import describe
from seqlm.report.figures.diagrams import graph_figure
from seqlm.report.figures.plots import information_figure, truncation_figure, unclipped_figure, zipf_figure
from seqlm.report.figures.style import svg_text
from seqlm.vocab.corpus import SPLITS, build_corpus, load_corpus


def test_the_graph_shows_the_first_tokens_shortened() -> None:
    words = svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    assert "machine" in words
    assert "extrao" in words
    assert "extraor" not in words
    assert words == svg_text(graph_figure(["the", "extraordinary", "$", "machine"]))
    svg_text(graph_figure(list("a b")))  # a text of only three tokens


def test_a_text_of_one_token_has_figures_too(recwarn: pytest.WarningsRecorder) -> None:
    reach = pd.DataFrame({"model": "scratch", "moment": "trained", "k": [0, 1], "norm": [1.0, 0.5]})
    nothing = pd.DataFrame({"distance": [1, 2], "bits": 0.0, "shuffled_deviation": 0.0})
    svg_text(information_figure(nothing, reach))
    assert not recwarn.list


def test_a_bias_within_two_standard_errors_is_not_drawn() -> None:
    rows = [("regular", 4, 0.2, 0.01, 0.001), ("randomized", 4, 0.9, 10.0, 1.0)]
    table = pd.DataFrame(rows, columns=["strategy", "length", "bias", "spread", "standard_error"])
    convergence = pd.DataFrame({"strategy": "regular", "draws": [1, 2], "distance": 0.2, "standard_error": 0.01})
    shown = svg_text(truncation_figure(table, convergence))
    assert "regular, bias" in shown
    assert "randomized, spread" in shown
    assert "randomized, bias" not in shown


def test_a_perplexity_near_the_largest_number_is_drawn() -> None:
    row = {"activation": "relu", "clip": "no clip"}
    rows = [row | {"minibatch": n, "norm": 10.0**n, "perplexity": 10.0 ** (60 * n)} for n in range(1, 6)]
    assert "<svg" in svg_text(unclipped_figure(pd.DataFrame(rows)))


def test_orders_without_a_fit_have_no_line(tmp_path: Path) -> None:
    paths = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in paths.values():
        path.write_text("sea sea sea\n" * 5)
    build_corpus(paths, tmp_path, "word", "", 0, [])
    tables = describe(join_splits(load_corpus(tmp_path), Chunking(2**30, tmp_path)), 2, 3)
    fits, ranks = tables["summary"]["zipf"], pd.DataFrame(tables["zipf"])
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
