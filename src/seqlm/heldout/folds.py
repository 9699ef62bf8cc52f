"""Cross-validates two reference models, to see how much parts of one text differ.

Each model scores several parts of train that are as long as test, trained on the rest. The spread of these values is
what one value on one test part does not show.
"""

from collections.abc import Iterator

import numpy as np

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.heldout.scored_text import Ids
from seqlm.heldout.store import Folds, load_heldout
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.corpus import load_corpus

ORDERS = (5, 3)
"""Of the reference models; the second one shows how much differences between models differ between parts."""
MIN_FOLDS, MAX_FOLDS = 5, 20
_MIN_FOLD_CHARS = 100


def cross_validate(layout: Layout) -> Folds:
    """Cross-validate Kneser-Ney models over the characters of train; write and return what they show.

    There are no values if test is scored in passages, because those show the spread themselves, or if train is too
    short.
    """
    heldout = load_heldout(layout.heldout("char"), "char")
    splits = load_corpus(layout.corpus("char"), "char").splits
    train, test, vocab_size = splits["train"].ids, splits["test"].ids, len(splits["train"].vocab)
    text = heldout.text("test")
    length = min(len(test), len(train) // MIN_FOLDS)
    folds = Folds([], [])
    if text.share == 1 and length >= _MIN_FOLD_CHARS:
        blocks = [text.block_bits(nats, text.num_blocks) for nats in _nats(train, test, vocab_size)]
        bits = np.transpose(list(fold_bits(np.asarray(train), vocab_size, length)))
        folds = Folds(bits.tolist(), np.asarray(blocks).tolist())
    folds.save(layout.heldout("char"))
    return folds


def fold_bits(ids: Ids, vocab_size: int, length: int) -> Iterator[list[float]]:
    """Yield the bits per token of each model on parts of a text of about ``length`` tokens, trained on the rest.

    A text that has more than :data:`MAX_FOLDS` parts is cut off after them.
    """
    num_folds = min(round(len(ids) / length), MAX_FOLDS)
    parts = np.array_split(ids[: round(num_folds * length * 1.1)], num_folds)
    for index, part in enumerate(parts):
        rest = np.concatenate([*parts[:index], *parts[index + 1 :]])
        yield [float(nats.mean() / np.log(2)) for nats in _nats(rest, part, vocab_size)]


def _nats(train: Ids, ids: Ids, vocab_size: int) -> list[Nats]:
    """Return the surprisals of each reference model."""
    counts = count_ngrams(train, vocab_size, max(ORDERS))
    return [token_nll(KneserNey(counts, order), ids) for order in ORDERS]
