"""Scores n-gram models: those of train, those of its beginning, and those that keep counting."""

from collections.abc import Iterator, Sequence
from functools import cache, partial

from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import MAX_TOKENS, NGram, model_of_few, orders_of_few, recounting_model, static_models
from seqlm.models.word_to_char import words_as_characters
from seqlm.ngrams.models.kneser_ney import FALLBACK_DISCOUNTS
from seqlm.score.folds import cross_validate
from seqlm.score.heldout import Heldout
from seqlm.score.scores import Scores, save_all, score_model
from seqlm.score.settings import DynamicCountsParams, ScoreParams
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

MAX_UNKNOWN_SHARE = 0.5
"""If more of the words of val are unknown, as in scripts without spaces, only their spelling would predict."""


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token; the best one over words is also read as one over characters."""
    save_all(layout.scores_of_ngrams(kind), _scores(layout, kind, params.dynamic_counts, log), log)
    if kind == "char":
        cross_validate(layout).save(layout.folds)


def _scores(layout: Layout, kind: Kind, dynamic: DynamicCountsParams | None, log: Log) -> Iterator[Scores]:
    counted = Vocab.load(layout.vocab(kind), kind)
    static = static_models(layout, counted)
    _log_fallbacks(static, log)
    models: list[LanguageModel] = [*static, *(model_of_few(layout, counted, order) for order in orders_of_few(counted))]
    num_tokens = counted.splits["train"].num_tokens
    is_word_to_char = kind == "word" and _is_read_as_characters(counted, log)
    if is_word_to_char:
        models.append(words_as_characters(layout, counted))
    if dynamic is not None and num_tokens <= MAX_TOKENS:
        order = min(dynamic.order[kind], num_tokens)
        models.append(recounting_model(layout, counted, order))
        if is_word_to_char:
            models.append(words_as_characters(layout, counted, order))
    elif dynamic is not None:
        log(f"{kind}: no model keeps counting, because train has {num_tokens:,} tokens, more than {MAX_TOKENS:,}")
    heldout_of = cache(partial(Heldout, layout))
    yield from (score_model(model, heldout_of(model.vocab.kind)) for model in models)


def _is_read_as_characters(words: Vocab, log: Log) -> bool:
    """Return whether a model over words is read as one over characters; if not, say why."""
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words <= MAX_TOKENS and unknown <= MAX_UNKNOWN_SHARE:
        return True
    unlikely = f"{unknown:.0%} of the words of val are unknown"
    reason = unlikely if num_words <= MAX_TOKENS else f"train has {num_words:,} words, more than {MAX_TOKENS:,}"
    log(f"the model over words is not read as one over characters: {reason}")
    return False


def _log_fallbacks(models: Sequence[NGram], log: Log) -> None:
    # Only models that estimate discounts may have to replace them.
    orders = {order for model in models for order in getattr(model.model, "fallback_orders", ())}
    if orders:
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        replaced, kind = ", ".join(map(str, sorted(orders))), models[0].vocab.kind
        log(f"{kind}: the estimated Kneser-Ney discounts of order {replaced} are not valid: {discounts} replace them")
