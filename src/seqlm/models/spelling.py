"""The spelling of unknown words, which a model over words does not predict.

A model over words that predicts ``<unk>`` does not predict which word. To compare it with models
over characters, each unknown word is charged the surprisal of its spelling under a small character
model, so that no model gains by not knowing a word. A character that even this model lacks, like an
unknown character of a character model, is charged as one of all Unicode characters. Separators
are charged apart from words (:mod:`seqlm.vocab.separators`).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from seqlm.core.text import NUM_CODE_POINTS
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

UNIFORM_CHAR_NLL = math.log(NUM_CODE_POINTS)
ORDER = 4
_CACHED_PROBABILITIES = 5_000_000
"""Probabilities of the next character that are cached: with thousands of characters, those of few
contexts."""
_CACHED_COSTS = 10_000
"""Words whose costs are cached."""
_CACHED_MODELS = 4
"""Spelling models that are cached."""
_END = "\n"
MAX_CHARS = 2_000_000
"""The model is trained on at most this many characters: on every n-th word of a larger
vocabulary."""


class SpellingModel:
    """A Kneser-Ney model over the characters of the vocabulary's words, each word once."""

    def __init__(self, words: Sequence[str]) -> None:
        sample = words[:: sum(map(len, words)) // MAX_CHARS + 1]
        text = _END + "".join(word + _END for word in sample)
        self._indices = {
            character: index for index, character in enumerate([UNKNOWN, *sorted(set(text))])
        }
        ids = self._encode(text)
        order = min(ORDER, len(ids))
        self._model = KneserNey(count_ngrams(ids, len(self._indices), order), order)
        self._after = lru_cache(_CACHED_PROBABILITIES // len(self._indices))(self._find_next)
        self._cost = lru_cache(_CACHED_COSTS)(self._find_cost)

    def nll(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return -log p of spelling each word, including its end; shape ``(len(words),)``."""
        return np.array([self._cost(word) for word in words])

    def __contains__(self, character: str) -> bool:
        return character != UNKNOWN and character in self._indices

    def prob(self, prefix: str, character: str) -> float:
        """Return p of the next character after the first characters of a word; "" stands for its
        end.

        No word is empty. Characters that the model does not know share one probability.
        """
        probs = self._after((_END + prefix)[1 - ORDER :])
        if prefix:
            return float(probs[self._indices.get(character or _END, 0)])
        end = self._indices[_END]
        return (
            float(probs[self._indices.get(character, 0)] / (1 - probs[end])) if character else 0.0
        )

    def _find_next(self, context: str) -> NDArray[np.float64]:
        return self._model.next_distribution(self._encode(context))

    def _find_cost(self, word: str) -> float:
        ids = self._encode(_END + word + _END)
        unknown = int(np.count_nonzero(ids == 0))
        return float(token_nll(self._model, ids).sum()) + unknown * UNIFORM_CHAR_NLL

    def _encode(self, text: str) -> NDArray[np.int64]:
        return np.array([self._indices.get(character, 0) for character in text], np.int64)


@lru_cache(_CACHED_MODELS)
def _cached_model(vocab: Vocab) -> SpellingModel:
    # Of the marks of an ARPA file, one is empty, and one a line end: they are no words.
    no_words = UNKNOWN, "", _END
    return SpellingModel([token for token in vocab.tokens if token not in no_words])


def spelling_costs(vocab: Vocab, tokens: Sequence[str]) -> NDArray[np.float64]:
    """Return the cost in nats of each of some tokens that a vocabulary lacks; shape
    ``(len(tokens),)``."""
    if vocab.token_kind.is_character or not tokens:
        return np.full(len(tokens), UNIFORM_CHAR_NLL)
    return _cached_model(vocab).nll(tokens)


def unknown_costs(
    vocab: Vocab, tokens: Sequence[str], ids: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the spelling cost of each unknown token, in nats, and 0 for all others."""
    costs = np.zeros(len(ids))
    if np.count_nonzero(ids) < len(ids):
        is_unknown = ids == 0
        costs[is_unknown] = spelling_costs(vocab, list(compress(tokens, is_unknown.tolist())))
    return costs
