"""The book's values are required only with the chapter's settings."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from book_settings import RUNS, SETTINGS, differences
from default_params import PARAMS_FILE
from smoke import overlaid


def chapter(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the chapter's settings with ``changes``."""
    params = YAML(typ="safe", pure=True).load(PARAMS_FILE)
    of_all = {"num_hiddens": 512, "lr": 1.0, "num_epochs": 500, "grad_clip": 1.0, "batch_size": 32, "num_steps": 35}
    own = {"runs": RUNS} | {f"train.{key}": value for key, value in of_all.items()}
    found: dict[str, Any] = overlaid(params, SETTINGS | own | changes)
    return found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"num_threads": 1, "ngrams.max_order.word": 5, "generate.num_preds": 7}, []),
        ({"download.corpus": "my.txt"}, ["download.corpus"]),
        ({"ngrams.max_order.word": 2}, ["ngrams.max_order.word"]),
        ({"train.lr": 0.5}, [f"runs.{run}.lr" for run in RUNS]),
        ({"runs": RUNS | {"scratch-random": RUNS["scratch-random"] | {"seed": 7}}}, ["runs.scratch-random.seed"]),
        ({"runs": {run: own for run, own in RUNS.items() if run != "concise-random"}}, ["runs.concise-random"]),
    ],
)
def test_settings_other_than_the_chapters_are_named(changes: dict[str, Any], found: list[str]) -> None:
    assert differences(chapter(changes)) == found
