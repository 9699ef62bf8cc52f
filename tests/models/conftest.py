"""Models of all kinds, trained on a small text."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.models import networks, ngrams
from seqlm.models.index import Models, open_models
from seqlm.models.info import mixture_info
from seqlm.models.mixture import mix
from seqlm.pipeline.evaluate.mixtures import save_mixtures
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.networks import score_run
from seqlm.pipeline.score.ngrams import score_kind
from seqlm.pipeline.score.scores import Scores, load_scores, make_scores
from seqlm.pipeline.score.settings import ScoreParams
from seqlm.vocab.kinds import KINDS
from small_runs import write_models
from smoke import change_params
from stages_by_hand import prepare

# A text whose beginning says little about its end, so that models which keep learning gain.
SEA, LAND = ("the sea came in\nand the sea went out\n", "a land of sand and stone\nno tree at all stood on the land\n")
SETTINGS = {
    "preprocess.normalise": "letters",
    "score.dynamic_counts.order.char": 4,
    "score.dynamic_counts.order.word": 3,
    "score.dynamic_counts.order.subword": 3,
}
MIXTURES = [("char-kneser-ney-3", "char-by-word-kneser-ney-3"), ("char-kneser-ney-4+dynamic", "small")]
WEIGHTS = [0.25, 0.75]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Layout, dict[str, Scores]]]:
    """A run whose models are scored as the stages do, with constants that suit its short text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "SMALL_SAMPLE_TOKENS", 90)
        patch.setattr(ngrams, "SMALL_SAMPLE_ORDERS", {"char": (1, 3)})
        patch.setattr(ngrams, "NUM_UPDATES", 3)
        patch.setattr(networks, "RMS_SEGMENTS", 4)
        layout = write_models(prepare(tmp_path_factory.mktemp("scored")), SEA * 10 + LAND * 2 + SEA)
        change_params(layout.params, SETTINGS)
        params, scores = load(layout.params, "score", ScoreParams), dict[str, Scores]()
        for kind in KINDS:
            score_kind(layout, kind, params, print)
        score_run(layout, "small", params, print)
        for path in layout.scores.rglob("score.json"):
            scores[path.parent.name] = load_scores(path.parent)
        for names in MIXTURES:
            mixture = _mixture(layout, [scores[name] for name in names])
            scores[mixture.name] = mixture
        save_mixtures(layout.mixtures, list(scores.values()))
        yield layout, scores


def _mixture(layout: Layout, members: Sequence[Scores]) -> Scores:
    streams = Heldout(layout, "char").streams
    nll = {split: mix([member.nll[split] for member in members], np.array(WEIGHTS)) for split in ("val", "test")}
    weights = dict(zip([member.name for member in members], WEIGHTS, strict=True))
    return make_scores(mixture_info([member.info for member in members]), nll, streams, {"weights": weights})


@pytest.fixture(scope="module")
def models(scored: tuple[Layout, dict[str, Scores]]) -> Models:
    return open_models(scored[0].root)
