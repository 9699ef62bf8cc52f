"""Scores all n-gram models over one kind of token."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.progress import Log
from seqlm.heldout.scored_text import Ids, Stream, Streams
from seqlm.heldout.store import read_streams
from seqlm.ngrams.models.base import NGramModel, token_nll
from seqlm.ngrams.models.kneser_ney import FALLBACK_DISCOUNTS, KneserNey
from seqlm.ngrams.models.registry import load_models
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.model_info import describe_ngram
from seqlm.score.ngrams.dynamic import recounted_nll
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.score.store import Score, if_better, save_scores, score_of
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import Kind, token_kind
from seqlm.vocab.vocabulary import Vocab

BEST_OF_KIND = "best_of_kind"
"""In a score's metadata: whether the model is the best n-gram model over its kind of token, on val."""


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token, and one with dynamic counts unless train is too long."""
    vocab = Vocab.load(layout.vocab(kind), kind)
    streams = read_streams(layout, kind)
    save_scores(layout.scores_of_ngrams(kind), _scores(layout, vocab, streams, params.dynamic_counts, log), log)


def _scores(
    layout: Layout, vocab: Vocab, streams: Streams, dynamic: DynamicCountsParams | None, log: Log
) -> Iterator[Score]:
    static = None
    for score in score_ngrams(load_models(layout.ngrams(vocab.kind), len(vocab)), vocab, streams, log):
        yield score
        static = score  # the last one is the Kneser-Ney model of the highest order
    if dynamic is None or static is None:
        return
    if (num_tokens := vocab.splits["train"].num_tokens) > dynamic.max_tokens:
        log(
            f"{vocab.kind}: no dynamic counts: train has {num_tokens:,} tokens, "
            f"score.dynamic_counts.max_tokens allows {dynamic.max_tokens:,}"
        )
        return
    train = load_split(layout.corpus(vocab.kind), "train", mmap=True, vocab=vocab)
    yield from if_better(score_recounted(train, vocab, streams, dynamic), static, log)


def score_ngrams(models: Mapping[str, NGramModel], vocab: Vocab, streams: Streams, log: Log) -> Iterator[Score]:
    """Yield the score of every n-gram model over a kind of token; the best on val gets its diagnostics."""
    _log_fallbacks(models, vocab.kind, log)
    on_val = {name: float(_nats(model, streams["val"]).sum()) for name, model in models.items()}
    best = min(on_val, key=lambda name: on_val[name])
    for name, model in models.items():
        metadata: dict[str, Any] = {BEST_OF_KIND: name == best}
        if name == best and token_kind(vocab.kind).is_character:
            metadata |= diagnose(ngram_predictor(model), streams["test"].ids)
        info = describe_ngram(model.smoothing, model.order, vocab)
        yield score_of(info, {split: _nats(model, stream) for split, stream in streams.items()}, streams, metadata)


def score_recounted(train: Ids, vocab: Vocab, streams: Streams, params: DynamicCountsParams) -> Score:
    """Return the score on val and test of a model with dynamic counts; ``train`` are all tokens of train."""
    order = params.order_for(vocab.kind, len(train))
    score = partial(recounted_nll, train, vocab_size=len(vocab), order=order, num_updates=params.num_updates)
    info = describe_ngram(KneserNey.smoothing, order, vocab).as_dynamic()
    return score_of(info, {split: streams[split].nats(score) for split in ("val", "test")}, streams)


def ngram_predictor(model: NGramModel) -> Predictor:
    """Return what the diagnostics need of an n-gram model."""

    def window_nats(windows: NDArray[np.int64]) -> Nats:
        return -log(np.stack([model.probs(window) for window in windows]))

    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        span = max(model.order - 1, 1)
        for end in range(1, len(ids)):
            yield model.next_distribution(ids[max(end - span, 0) : end])[None]

    return Predictor(window_nats, distributions)


def _nats(model: NGramModel, stream: Stream) -> Nats:
    return stream.nats(partial(token_nll, model))


def _log_fallbacks(models: Mapping[str, NGramModel], kind: Kind, log: Log) -> None:
    # Only models that estimate discounts have reasons to replace them.
    reasons = {reason for model in models.values() for reason in getattr(model, "fallback_reasons", ())}
    if reasons:
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        log(f"{kind}: the Kneser-Ney discounts of some orders are {discounts}: {'; '.join(sorted(reasons))}")
