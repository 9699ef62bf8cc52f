"""Scores n-gram models: those of train, those of its beginning, and those that keep counting."""

from collections.abc import Iterator
from itertools import chain

from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.models.info import describe_ngram
from seqlm.models.ngrams import FEW_TOKENS, NGram, model_of_few, orders_of_few, static_models, unknown_of
from seqlm.models.recounting import MAX_TOKENS, NUM_UPDATES, Recounting
from seqlm.models.scored_text import Streams
from seqlm.models.word_to_char import words_as_characters
from seqlm.ngrams.models.kneser_ney import FALLBACK_DISCOUNTS, KneserNey
from seqlm.score.diagnostics import context_metadata
from seqlm.score.folds import cross_validate
from seqlm.score.heldout import Heldout
from seqlm.score.scores import Scores, drop_needless_train, if_better, save_all, score_model, total_nll, val_bits
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

MAX_UNKNOWN_SHARE = 0.5
"""If more of the words of val are unknown, as in scripts without spaces, only their spelling would predict."""


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token; the best one over words is also read as one over characters."""
    folder, dynamic = layout.scores_of_ngrams(kind), params.dynamic_counts
    of_characters = _scores_of_characters(layout, dynamic, log) if kind == "word" else ()
    save_all(folder, chain(_scores(layout, kind, dynamic, log), of_characters), log)
    drop_needless_train(folder, kind)
    if kind == "char":
        cross_validate(layout).save(layout.folds)


def _scores(layout: Layout, kind: Kind, dynamic: DynamicCountsParams | None, log: Log) -> Iterator[Scores]:
    vocab, heldout = Vocab.load(layout.vocab(kind), kind), Heldout(layout, kind)
    models, streams = static_models(layout, vocab), heldout.streams
    scored = list(score_static(models, streams, log))
    yield from scored
    for order in orders_of_few(vocab):
        yield score_model(model_of_few(layout, vocab, order), streams, subset=heldout.beginning_of_train(FEW_TOKENS))
    if dynamic is not None and is_recounted(vocab, log):
        unknown, num_tokens = unknown_of(layout, vocab), vocab.splits["train"].num_tokens
        order = dynamic.order_for(kind, num_tokens)
        recounting = Recounting.of_train(layout, vocab, order, unknown, vocab, NUM_UPDATES)
        model = NGram(describe_ngram(KneserNey.smoothing, order, vocab).as_dynamic(), vocab, recounting)
        best = min(scored, key=val_bits)
        yield from if_better(score_model(model, streams, ("val", "test")), best, log)


def score_static(models: list[NGram], streams: Streams, log: Log) -> Iterator[Scores]:
    """Yield the scores of n-gram models over one kind of token; the best on val shows how it depends on context."""
    _log_fallbacks(models, log)
    best = min(models, key=lambda model: total_nll(streams["val"].nll(model.token_nll)))
    for model in models:
        metadata = context_metadata(model, streams["test"].ids) if model is best else {}
        yield score_model(model, streams, metadata=metadata)


def _scores_of_characters(layout: Layout, dynamic: DynamicCountsParams | None, log: Log) -> Iterator[Scores]:
    """Yield the scores of the model over words on characters, with static and with dynamic counts.

    There are none, and the reason is logged, if train is too long or most words of val are unknown.
    """
    words, streams = Vocab.load(layout.vocab("word"), "word"), Heldout(layout, "char").streams
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words > MAX_TOKENS or unknown > MAX_UNKNOWN_SHARE:
        unlikely = f"{unknown:.0%} of the words of val are unknown"
        reason = unlikely if num_words <= MAX_TOKENS else f"train has {num_words:,} words, more than {MAX_TOKENS:,}"
        log(f"the model over words is not read as one over characters: {reason}")
        return
    static = score_model(words_as_characters(layout, words), streams)
    yield static
    if dynamic is not None:
        model = words_as_characters(layout, words, dynamic.order_for("word", num_words), NUM_UPDATES)
        yield from if_better(score_model(model, streams, ("val", "test")), static, log)


def is_recounted(vocab: Vocab, log: Log) -> bool:
    """Return whether train is short enough to be counted again and again; if not, say so."""
    if (num_tokens := vocab.splits["train"].num_tokens) <= MAX_TOKENS:
        return True
    log(f"{vocab.kind}: no model keeps counting, because train has {num_tokens:,} tokens, more than {MAX_TOKENS:,}")
    return False


def _log_fallbacks(models: list[NGram], log: Log) -> None:
    # Only models that estimate discounts may have to replace them.
    orders = {order for model in models for order in getattr(model.model, "fallback_orders", ())}
    if orders:
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        replaced, kind = ", ".join(map(str, sorted(orders))), models[0].vocab.kind
        log(f"{kind}: the estimated Kneser-Ney discounts of order {replaced} are not valid: {discounts} replace them")
