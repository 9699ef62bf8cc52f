"""N-gram models that keep counting: at equal distances in a text, everything is counted again, with the text so far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from seqlm.core.layout import Layout
from seqlm.models.scored_text import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.ngrams.settings import Unknown
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab

NUM_UPDATES = 40
"""How many times in a text everything is counted again: with more, scores hardly improve and take longer."""
MAX_TOKENS = 200_000
"""A longer train is not counted again and again, and its model over words not read as one over characters: both take
long, and on long texts they add little."""


@dataclass(frozen=True)
class Recounting:
    """The n-gram model at each place of a text: always the same, or one that has counted the text before."""

    model_after: Callable[[Sequence[int] | Ids], NGramModel]
    """Returns the model after the tokens read so far."""
    num_updates: int = 1
    """In how many equal parts a text is counted that is scored as a whole."""
    update_every: int | None = None
    """After how many tokens everything is counted again in a text that is read token by token; None: never."""

    @classmethod
    def fixed(cls, model: NGramModel) -> Self:
        """Return that the model is always the same."""
        return cls(partial(_same, model))

    @classmethod
    def of_train(
        cls, layout: Layout, counted: Vocab, order: int, unknown: Unknown, predicted: Vocab, num_updates: int
    ) -> Self:
        """Return Kneser-Ney models of train and the text so far; ``predicted``: the vocabulary of what is predicted."""
        train = load_split(layout.corpus(counted.kind), "train", mmap=True)
        recount = partial(recounted_on, train, vocab_size=len(counted), order=order, unknown=unknown)
        return cls(recount, num_updates, max(predicted.splits["test"].num_tokens // num_updates, 1))

    def is_due(self, num_read: int) -> bool:
        """Return whether everything is counted again: after the first token, and after each interval from there."""
        return self.update_every is not None and (num_read - 1) % self.update_every == 0

    def parts(self, length: int) -> list[range]:
        """Return the positions of a text in equal parts, of which the last may be shorter."""
        size = max(-(-length // self.num_updates), 1)
        return [range(start, min(start + size, length)) for start in range(0, length, size)]


def _same(model: NGramModel, _: Sequence[int] | Ids) -> NGramModel:
    return model


def recounted_on(
    train: Ids, predicted: Sequence[int] | Ids, *, vocab_size: int, order: int, unknown: Unknown
) -> KneserNey:
    """Return a model of ``train``, which has at least ``order`` tokens, followed by the text predicted so far."""
    text = np.concatenate([train, np.asarray(predicted, np.int64)])
    return KneserNey(count_ngrams(text, vocab_size, order), order, unknown=unknown)
