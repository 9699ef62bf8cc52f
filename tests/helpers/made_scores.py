"""Scores of made-up models on made-up texts."""

from collections.abc import Mapping

import numpy as np

from seqlm.core.metrics import Nll
from seqlm.models.info import ModelInfo
from seqlm.models.scored_text import Stream
from seqlm.pipeline.score.scores import Scores, make_scores
from seqlm.vocab.corpus import SPLITS


def stream_of(ids: np.ndarray, lengths: np.ndarray, spelling: Nll, num_chars: int) -> Stream:
    """Return a text of which every token but the first is scored; lengths and costs are those of the others."""
    is_scored = np.arange(len(ids)) > 0
    return Stream(input_ids=ids, is_scored=is_scored, lengths=lengths, spelling=spelling, num_chars=num_chars)


def stream(ids: np.ndarray) -> Stream:
    """Return tokens of one character each as a stream, unknown ones without a cost."""
    size = len(ids) - 1
    return stream_of(ids, np.ones(size, np.int64), np.zeros(size), size)


def scored_text(num_scored: int) -> Stream:
    """Return a text of known tokens of one character each; the first token is not scored."""
    return stream(np.ones(num_scored + 1, np.int64))


def network(name: str, token: str = "char", **changes: object) -> ModelInfo:
    """Return the description of a network that was trained on 1,000 characters."""
    properties: dict[str, object] = {"train_chars": 1000, "network": "lstm"}
    return ModelInfo(name, "network", token, **(properties | changes))  # type: ignore[arg-type]


def ngram(name: str, token: str = "char", **changes: object) -> ModelInfo:
    """Return the description of an n-gram model of order 2."""
    properties: dict[str, object] = {"train_chars": 1000, "counted_token": token, "smoothing": "kneser-ney", "order": 2}
    return ModelInfo(name, "ngram", token, **(properties | changes))  # type: ignore[arg-type]


def score(
    info: ModelInfo, nll: Nll | Mapping[str, Nll], metadata: Mapping[str, object] | None = None, **splits: Nll
) -> Scores:
    """Return a score with the same surprisals on each split; only on val and test if the model is dynamic."""
    if not isinstance(nll, Mapping):
        nll = dict.fromkeys(SPLITS[1:] if info.dynamic else SPLITS, nll)
    nll = {**nll, **splits}
    return make_scores(info, nll, {split: scored_text(len(values)) for split, values in nll.items()}, metadata)
