"""How much parts of one text differ, which test alone does not show: two reference models are cross-validated.

Each model scores several parts of train that are as long as test, trained on the rest. ``folds.json`` has the values.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from seqlm.core.files import read_checksummed, write_checksummed
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.models.scored_text import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.score.heldout import Heldout
from seqlm.vocab.corpus import load_corpus

FORMAT = 2
ORDERS = (5, 3)
"""Of the reference models; the second one shows how much differences between models differ between parts."""
MIN_FOLDS, MAX_FOLDS = 5, 20
MIN_FOLD_CHARS = 100


@dataclass(frozen=True)
class Folds:
    """How much the bits per character of two reference models differ between parts of one text."""

    bits: list[list[float]]
    """For each model, its bits on each of some parts of train, trained on the rest; each part is as long as test."""
    test_blocks: list[list[float]]
    """For each model, its bits on each block of test, trained on all of train."""

    def save(self, path: Path) -> None:
        """Write what :meth:`load` reads."""
        write_checksummed(path, {"format": FORMAT} | asdict(self))

    @classmethod
    def load(cls, path: Path) -> "Folds | None":
        """Return what was stored; None if the text was too short or too long to be cross-validated."""
        value = read_checksummed(path, FORMAT, "score the n-gram models over characters again")
        return cls(value["bits"], value["test_blocks"]) if value["bits"] else None


def cross_validate(layout: Layout) -> Folds:
    """Cross-validate Kneser-Ney models over the characters of train; return what they show.

    There are no values if test is scored in passages, because those show the spread themselves, or if train is too
    short.
    """
    splits = load_corpus(layout.corpus("char"), "char").splits
    train, test, vocab_size = splits["train"].ids, splits["test"].ids, len(splits["train"].vocab)
    text = Heldout(layout, "char").stream("test")
    length = min(len(test), len(train) // MIN_FOLDS)
    if text.share < 1 or length < MIN_FOLD_CHARS:
        return Folds([], [])
    blocks = [text.block_bits(nll, text.num_blocks) for nll in _nll(train, test, vocab_size)]
    bits = np.transpose(list(fold_bits(np.asarray(train), vocab_size, length)))
    return Folds(bits.tolist(), np.asarray(blocks).tolist())


def fold_bits(ids: Ids, vocab_size: int, length: int) -> Iterator[list[float]]:
    """Yield the bits per token of each model on parts of a text of about ``length`` tokens, trained on the rest.

    A text that has more than :data:`MAX_FOLDS` parts is cut off after them.
    """
    num_folds = min(round(len(ids) / length), MAX_FOLDS)
    parts = np.array_split(ids[: round(num_folds * length * 1.1)], num_folds)
    for index, part in enumerate(parts):
        rest = np.concatenate([*parts[:index], *parts[index + 1 :]])
        yield [float(nll.mean() / math.log(2)) for nll in _nll(rest, part, vocab_size)]


def _nll(train: Ids, ids: Ids, vocab_size: int) -> list[Nll]:
    """Return the surprisals of each reference model."""
    counts = count_ngrams(train, vocab_size, max(ORDERS))
    return [token_nll(KneserNey(counts, order), ids) for order in ORDERS]
