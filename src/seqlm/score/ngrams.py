"""Scores n-gram models: those of train, those of its beginning, and one that keeps counting what it has predicted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log
from seqlm.heldout.scored_text import Ids, Stream, Streams
from seqlm.heldout.store import read_beginning_of_train, read_streams
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel, token_nll
from seqlm.ngrams.models.kneser_ney import FALLBACK_DISCOUNTS, KneserNey
from seqlm.ngrams.models.registry import build_models, load_counts
from seqlm.ngrams.settings import Unknown
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.model_info import describe_ngram
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.score.store import Score, drop_needless_train, if_better, make_score, save_scores, with_train_subset
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import Kind, token_kind
from seqlm.vocab.vocabulary import Vocab

ModelAfter = Callable[[Sequence[int] | Ids], NGramModel]
"""Returns the model of the tokens that follow those read so far."""


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token; one of them keeps counting, unless train is too long."""
    save_scores(layout.scores_of_ngrams(kind), _scores(layout, kind, params, log), log)
    drop_needless_train(layout.scores_of_ngrams(kind))


def _scores(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> Iterator[Score]:
    vocab, streams = Vocab.load(layout.vocab(kind), kind), read_streams(layout, kind)
    train = load_split(layout.corpus(kind), "train", mmap=True)
    counts, settings = load_counts(layout.ngrams(kind), vocab.key)
    unknown = settings[KneserNey.smoothing]["unknown"]
    for score in score_ngrams(build_models(counts, settings), vocab, streams, log):
        if (score.info.smoothing, score.info.order) == (KneserNey.smoothing, counts.max_order):
            static = score  # which the dynamic one has to beat
        yield score
    if (few := params.train_subset) is not None and kind in few.orders and few.max_tokens < len(train):
        subset = read_beginning_of_train(layout, kind, few.max_tokens)
        yield from score_train_subset(train[: few.max_tokens], vocab, streams, subset, few.orders[kind], unknown)
    if params.dynamic_counts is not None:
        if len(train) > (most := params.dynamic_counts.max_tokens):
            why = f"train has {len(train):,} tokens, score.dynamic_counts.max_tokens allows {most:,}"
            log(f"{kind}: no dynamic counts: {why}")
        else:
            yield from if_better(score_recounted(train, vocab, streams, params.dynamic_counts, unknown), static, log)


def score_ngrams(models: Mapping[str, NGramModel], vocab: Vocab, streams: Streams, log: Log) -> Iterator[Score]:
    """Yield the score of every n-gram model over a kind of token; the best on val gets its diagnostics."""
    _log_fallbacks(models, vocab.kind, log)
    on_val = {name: float(_nll(model, streams["val"]).sum()) for name, model in models.items()}
    best = min(on_val, key=lambda name: on_val[name])
    for name, model in models.items():
        is_diagnosed = name == best and token_kind(vocab.kind).is_character
        metadata = diagnose(ngram_predictor(model), streams["test"].ids) if is_diagnosed else {}
        info = describe_ngram(model.smoothing, model.order, vocab, chosen_on_val=model.chosen_on_val)
        yield make_score(info, {split: _nll(model, stream) for split, stream in streams.items()}, streams, metadata)


def score_train_subset(
    train: Ids, vocab: Vocab, streams: Streams, subset: Stream | None, orders: Sequence[int], unknown: Unknown
) -> Iterator[Score]:
    """Yield the scores of Kneser-Ney models of some tokens of train, which are also scored on these, as ``subset``.

    They are on equal terms with networks that were trained on the same tokens.
    """
    counts = count_ngrams(train, len(vocab), min(max(orders), len(train)))
    for order in orders:
        model = KneserNey(counts, min(order, len(train)), unknown=unknown)
        info = describe_ngram(model.smoothing, model.order, vocab, len(train))
        nll = {split: _nll(model, stream) for split, stream in streams.items()}
        score = make_score(info, nll, streams, {"train_tokens": len(train)})
        yield score if subset is None else with_train_subset(score, _nll(model, subset), subset)


def score_recounted(train: Ids, vocab: Vocab, streams: Streams, params: DynamicCountsParams, unknown: Unknown) -> Score:
    """Return the score on val and test of a model that keeps counting; ``train`` are all tokens of train."""
    order = params.order_for(vocab.kind, len(train))
    model_after = partial(recounted_on, train, vocab_size=len(vocab), order=order, unknown=unknown)
    score = partial(recounted_nll, model_after, num_updates=params.num_updates)
    info = describe_ngram(KneserNey.smoothing, order, vocab).as_dynamic()
    nll = {split: streams[split].nll(score) for split in ("val", "test")}
    return make_score(info, nll, streams, {"num_updates": params.num_updates})


def recounted_on(
    train: Ids, predicted: Sequence[int] | Ids, *, vocab_size: int, order: int, unknown: Unknown
) -> KneserNey:
    """Return a model of ``train``, which has at least ``order`` tokens, followed by the text predicted so far."""
    text = np.concatenate([train, np.asarray(predicted, np.int64)])
    return KneserNey(count_ngrams(text, vocab_size, order), order, unknown=unknown)


def recounted_nll(model_after: ModelAfter, ids: Ids, *, num_updates: int) -> Nll:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, each predicted before it is counted.

    At the beginning of each of ``num_updates`` equal parts, ``model_after`` gets the text so far and returns its model.
    """
    found = []
    for part in equal_parts(max(len(ids) - 1, 0), num_updates):
        model = model_after(ids[: part.start + 1])
        begin = max(part.start - max(model.order - 1, 0), 0)
        found.append(token_nll(model, ids[begin : part.stop + 1])[part.start - begin :])
    return np.concatenate(found) if found else np.empty(0)


def equal_parts(length: int, number: int) -> list[range]:
    """Return the positions of a text in at most ``number`` equal parts, of which the last may be shorter."""
    size = max(-(-length // number), 1)
    return [range(start, min(start + size, length)) for start in range(0, length, size)]


def ngram_predictor(model: NGramModel) -> Predictor:
    """Return what the diagnostics need of an n-gram model."""

    def window_nll(windows: NDArray[np.int64]) -> Nll:
        return np.stack([token_nll(model, window) for window in windows])

    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        span = max(model.order - 1, 1)
        for end in range(1, len(ids)):
            yield model.next_distribution(ids[max(end - span, 0) : end])[None]

    return Predictor(window_nll, distributions)


def _nll(model: NGramModel, stream: Stream) -> Nll:
    return stream.nll(partial(token_nll, model))


def _log_fallbacks(models: Mapping[str, NGramModel], kind: Kind, log: Log) -> None:
    # Only models that estimate discounts may have to replace them.
    orders = {order for model in models.values() for order in getattr(model, "fallback_orders", ())}
    if orders:
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        replaced = ", ".join(map(str, sorted(orders)))
        log(f"{kind}: the estimated Kneser-Ney discounts of order {replaced} are not valid: {discounts} replace them")
