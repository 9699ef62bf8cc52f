"""Scores n-gram models: those of train, those of its beginning, and those that keep counting.

Test alone does not show how much parts of one text differ. So two reference models are
cross-validated: each scores several parts of train that are as long as test, trained on the rest.
``folds.json`` has the values.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log
from seqlm.core.stored import Stored
from seqlm.models.index import Models
from seqlm.models.info import dynamic_ngram_info
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import MAX_TOKENS, NGram
from seqlm.models.scored_text import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey, describe_fallback
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import Scores, save_scores_folder, score_model
from seqlm.pipeline.score.settings import DynamicCountsParams, ScoreParams
from seqlm.vocab.corpus import load_corpus
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

ORDERS = (5, 3)
"""Of the reference models; the second one shows how much differences between models differ between
parts."""
MIN_FOLDS, MAX_FOLDS = 5, 20
MIN_FOLD_CHARS = 100
MAX_UNKNOWN_SHARE = 0.5
"""If more of the words of val are unknown, as in scripts without spaces, only their spelling would
predict."""


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token; the best one over words is also read as one
    over characters."""
    save_scores_folder(
        layout.scores_of_ngrams(kind), _scores(layout, kind, params.dynamic_counts, log), log
    )
    if kind == "char":
        # After save_scores_folder, which removes every other file of this folder.
        cross_validate(layout).write(layout.folds)


def _scores(
    layout: Layout, kind: Kind, dynamic: DynamicCountsParams | None, log: Log
) -> Iterator[Scores]:
    models = Models(layout, device=None)
    counted, infos, tokens = models.vocab(kind), models.ngram_infos(kind), [kind]
    _log_fallbacks([models.ngram(info) for info in infos if info.train_tokens is None], log)
    num_tokens = counted.splits["train"].num_tokens
    if kind == "word" and _is_read_as_characters(counted, log):
        infos += models.char_from_words_infos()
        tokens.append("char")
    if dynamic is not None and num_tokens <= MAX_TOKENS:
        order = min(dynamic.order[kind], num_tokens)
        infos += [dynamic_ngram_info(order, counted, token) for token in tokens]
    elif dynamic is not None:
        log(
            f"{kind}: no model keeps counting, because train has {num_tokens:,} tokens, more than "
            f"{MAX_TOKENS:,}"
        )
    heldout_of = cache(partial(Heldout, layout))
    yield from (score_model(models.ngram(info), heldout_of(info.token)) for info in infos)


def _is_read_as_characters(words: Vocab, log: Log) -> bool:
    """Return whether a model over words is read as one over characters; if not, say why."""
    num_words, unknown = words.splits["train"].num_tokens, words.splits["val"].unknown_share
    if num_words <= MAX_TOKENS and unknown <= MAX_UNKNOWN_SHARE:
        return True
    unlikely = f"{unknown:.0%} of the words of the validation set are unknown"
    reason = (
        unlikely
        if num_words <= MAX_TOKENS
        else f"train has {num_words:,} words, more than {MAX_TOKENS:,}"
    )
    log(f"the model over words is not read as one over characters: {reason}")
    return False


def _log_fallbacks(models: Sequence[LanguageModel], log: Log) -> None:
    # Only models that estimate discounts may have to replace them.
    ngrams = [model.model for model in models if isinstance(model, NGram)]
    orders = {order for model in ngrams for order in getattr(model, "fallback_orders", ())}
    if orders:
        log(f"{models[0].vocab.kind}: {describe_fallback(orders)}")


class Folds(Stored):
    """How much the bits per character of two reference models differ between parts of one text."""

    version = 3
    advice = "score the n-gram models over characters again"

    bits: list[list[float]]
    """For each model, its bits on each of some parts of train, trained on the rest; each part is as
    long as test."""
    test_blocks: list[list[float]]
    """For each model, its bits on each block of test, trained on all of train."""

    @classmethod
    def load(cls, path: Path) -> "Folds | None":
        """Return what was stored; None if the text was too short or too long to be
        cross-validated."""
        folds = cls.read(path)
        return folds if folds.bits else None


def cross_validate(layout: Layout) -> Folds:
    """Cross-validate Kneser-Ney models over the characters of train; return what they show.

    There are no values if test is scored in passages, because those show the spread themselves, or
    if train is too short.
    """
    splits = load_corpus(layout.corpus("char"), "char").splits
    train, test, vocab_size = splits["train"].ids, splits["test"].ids, len(splits["train"].vocab)
    text = Heldout(layout, "char").stream("test")
    length = min(len(test), len(train) // MIN_FOLDS)
    if text.share < 1 or length < MIN_FOLD_CHARS:
        return Folds(bits=[], test_blocks=[])
    blocks = [
        text.block_bits(nll, text.num_blocks) for nll in _reference_nll(train, test, vocab_size)
    ]
    bits = np.transpose(list(fold_bits(np.asarray(train), vocab_size, length)))
    return Folds(bits=bits.tolist(), test_blocks=np.asarray(blocks).tolist())


def fold_bits(ids: Ids, vocab_size: int, length: int) -> Iterator[list[float]]:
    """Yield the bits per token of each model on parts of a text of about ``length`` tokens, trained
    on the rest.

    A text that has more than :data:`MAX_FOLDS` parts is cut off after them.
    """
    num_folds = min(round(len(ids) / length), MAX_FOLDS)
    # Unless there are too many parts this cuts nothing:
    # len(ids) <= (num_folds + 0.5) * length <= 1.1 * num_folds * length if num_folds >= 5.
    parts = np.array_split(ids[: round(num_folds * length * 1.1)], num_folds)
    for index, part in enumerate(parts):
        rest = np.concatenate([*parts[:index], *parts[index + 1 :]])
        yield [float(nll.mean() / math.log(2)) for nll in _reference_nll(rest, part, vocab_size)]


def _reference_nll(train: Ids, ids: Ids, vocab_size: int) -> list[Nll]:
    """Return the surprisals of each reference model."""
    counts = count_ngrams(train, vocab_size, max(ORDERS))
    return [token_nll(KneserNey(counts, order), ids) for order in ORDERS]
