"""Models that learn on from test are marked, and the headline names the best that do not."""

import numpy as np
import pytest

from seqlm.evaluate.ranking import collect_measures, draw_models, leaders, rank_models
from seqlm.evaluate.table_text import table_text
from seqlm.report.figures.evaluation import comparison_figure
from seqlm.report.figures.style import svg_text
from seqlm.score.heldout.splits import Stream
from seqlm.score.store import Score

STREAMS = {"char": {split: Stream(np.ones(1001, np.int64), 1000, np.zeros(1001), np.arange(1, 1002))
                    for split in ("train", "val", "test")}}  # fmt: skip
NOISE = np.random.default_rng(0).exponential(1.0, 1000)


def scored(**nats: float) -> list[Score]:
    """Return models with the same text's surprisals, each so many nats above; ``__`` in a name stands for ``+``."""
    return [
        Score(name.replace("__", "+"), "char", dict.fromkeys(STREAMS["char"], NOISE + plus))
        for name, plus in nats.items()
    ]


def ranked(models: list[Score]):
    """Return the table of models, and their draws."""
    measures = collect_measures(models, STREAMS)
    draws = draw_models(models, STREAMS, measures, 0)
    return rank_models(models, measures, draws), draws


def led(models: list[Score]):
    return leaders(*ranked(models))


# The same surprisals as those of the lstm in another order.
SHUFFLED = dict.fromkeys(STREAMS["char"], np.random.default_rng(0).permutation(NOISE) + 0.2)
MODELS = [
    *scored(lstm=0.2, lstm__dynamic=0.1, lstm__dynamic__counts=0.05, uniform=1.0),
    Score("char-laplace-1", "char", SHUFFLED),
]


def test_the_headline_names_the_best_that_stays_and_then_what_adaptation_adds() -> None:
    found = led(MODELS)
    # Their sums are equal: this text does not tell them apart.
    assert {found["trained"]["model"], found["trained"]["against"]} == {"lstm", "char-laplace-1"}
    assert found["trained"]["verdict"] == "not told apart"
    adapting = found["adapting"]
    assert (adapting["model"], adapting["against"]) == ("lstm+dynamic+counts", found["trained"]["model"])
    assert found["trained"]["bits"] - adapting["bits"] == pytest.approx(0.15 / np.log(2))
    assert found["counting"]["model"] == "char-laplace-1"


def test_a_difference_on_every_token_is_told_apart() -> None:
    models = scored(lstm=0.2, lstm__dynamic=0.1)
    found = led(models)
    assert found["trained"]["against"] is None
    assert found["trained"]["verdict"] is None
    assert found["adapting"]["verdict"] == "better"
    assert found["counting"] is None
    assert led(models[:1])["adapting"] is None


def test_rows_that_adapt_are_marked_in_the_table_and_in_the_figure() -> None:
    table, _ = ranked(MODELS)
    assert table.set_index("model")["adapts"].to_dict() == {model.name: "dynamic" in model.name for model in MODELS}
    text = table_text(table)
    assert text.count(" *") == 2
    assert "\n*: dynamic: goes on learning from the test text" in text
    assert "not that of the seed" in text
    figure = svg_text(comparison_figure(table))
    assert ">test, dynamic</text>" in figure
    others, _ = ranked([model for model in MODELS if not model.adapts])
    assert "dynamic" not in table_text(others)
    assert "dynamic" not in svg_text(comparison_figure(others))
