"""What an unknown word costs: its spelling.

A model over words that says ``<unk>`` has not said which word. To compare it with models
over characters, each unknown word is charged what a small character model needs to spell
it, so that no model wins by not knowing. Characters that even that model lacks, and
unknown characters of character models, are charged as one of all Unicode characters.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey, nats
from seqlm.vocab.vocabulary import UNKNOWN

NATS_OF_ANY_CHARACTER = math.log(0x110000)
_ORDER = 4
_KEPT_DISTRIBUTIONS = 1000
"""Distributions of the next character that are kept: with thousands of characters each is large."""
_END = "\n"
_MAX_CHARS = 2_000_000
"""Characters that the model learns from: of a larger vocabulary every second word is taken, every third, and so on."""


class SpellingModel:
    """A Kneser-Ney model over the characters of the vocabulary's words, each word once."""

    def __init__(self, words: Sequence[str]) -> None:
        learnt = words[:: sum(map(len, words)) // _MAX_CHARS + 1]
        text = _END + "".join(word + _END for word in learnt)
        self._indices = {character: index for index, character in enumerate([UNKNOWN, *sorted(set(text))])}
        ids = self._encode(text)
        self._model = KneserNey(count_ngrams(ids, len(self._indices), min(_ORDER, len(ids))), min(_ORDER, len(ids)))

    def nats(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return -log p of spelling each word, its end included; shape ``(len(words),)``."""
        costs = {word: self._cost(word) for word in set(words)}
        return np.array([costs[word] for word in words])

    def knows(self, character: str) -> bool:
        """Whether a word of the vocabulary has a character."""
        return character != UNKNOWN and character in self._indices

    def prob(self, begun: str, character: str) -> float:
        """Return p of the next character of a word that has begun so; that it ends there if there is none.

        No word is empty. Characters that the model does not know share one probability.
        """
        probs = self._after((_END + begun)[1 - _ORDER :])
        if begun:
            return float(probs[self._indices.get(character or _END, 0)])
        end = self._indices[_END]
        return float(probs[self._indices.get(character, 0)] / (1 - probs[end])) if character else 0.0

    @cached_property
    def _after(self) -> Callable[[str], NDArray[np.float64]]:
        model, encode = self._model, self._encode
        return lru_cache(_KEPT_DISTRIBUTIONS)(lambda context: model.next_distribution(encode(context)))

    def _cost(self, word: str) -> float:
        ids = self._encode(_END + word + _END)
        unknown = int(np.count_nonzero(ids == 0))
        return float(nats(self._model, ids).sum()) + unknown * NATS_OF_ANY_CHARACTER

    def _encode(self, text: str) -> NDArray[np.int64]:
        return np.array([self._indices.get(character, 0) for character in text], np.int64)
