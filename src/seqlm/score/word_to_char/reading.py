"""A model over words as a model over characters.

A character is as likely as the words that go on with it. After ``th`` an ``e`` has the share that the words which
begin with ``the`` have among those which begin with ``th``. Words outside the vocabulary are shared out by their
spelling; all of them together are as likely as the words that train has once (Good 1953). So a model over words
predicts the same tokens as one over characters, and the two can be mixed.

Where lines are joined by nothing, a word may end without a sign of it, and the next one begin. Several readings of
the characters since the last blank are followed, each with its probability, as the forward algorithm of hidden
Markov models does (Rabiner 1989); the least likely are dropped.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.ngrams.models.smoothing import NGramModel
from seqlm.score.heldout.spelling import SpellingModel
from seqlm.score.ngrams.dynamic import pieces
from seqlm.score.word_to_char.separators import BLANKS, SILENT, WORD_BEGINS, BlankModel
from seqlm.vocab.vocabulary import UNKNOWN

_LEAST_SHARE = 1e-4
"""A reading of a smaller share of the probability is dropped."""
_MOST_READINGS = 16
_KEPT_DISTRIBUTIONS = 64
"""Distributions of the next word that are kept: those of a large vocabulary are large."""
_KEPT_RANGES = 100_000
"""Beginnings of words for which it is kept which words they begin."""

_UNKNOWN_LETTER = "\U0010ffff"
"""Stands for every letter that the characters' vocabulary lacks: no character that a text may have."""

Words = tuple[int, ...]
"""Ids of words, in the order of the text."""
ModelAfter = Callable[[Sequence[int]], NGramModel]
"""Gives the model of the words that follow those that were read."""


class Lexicon:
    """The words that a model knows, sorted, and the spelling of all others."""

    def __init__(self, tokens: Sequence[str], counts: Sequence[int], characters: Sequence[str]) -> None:
        """Sort the words among ``tokens``, by their ids, that occur in train, as ``counts`` says.

        ``characters`` are all that are told apart, ``<unk>`` among them.
        """
        letters = set(characters)
        self.id_of: dict[str, int] = {}
        for index, (token, count) in enumerate(zip(tokens, counts, strict=True)):
            if token != UNKNOWN and count > 0:
                word = "".join(letter if letter in letters else _UNKNOWN_LETTER for letter in token)
                self.id_of.setdefault(word, index)
        self.words = sorted(self.id_of)
        self.ids = np.array([self.id_of[word] for word in self.words], np.int64)
        self.spelling = SpellingModel(self.words)
        self.unknown_share = sum(count == 1 for count in counts) / max(sum(counts), 1)
        """How likely a word is one that train lacks: the share of those seen once (Good 1953)."""
        unspelt = [letter for letter in letters if letter not in BLANKS and not self.spelling.knows(letter)]
        self._num_unspelt = max(len(unspelt), 1)

    def letter(self, character: str) -> str:
        """Return a token of the characters' vocabulary as a letter of the words."""
        return _UNKNOWN_LETTER if character == UNKNOWN else character

    def narrowed(self, first: int, stop: int, length: int, character: str) -> tuple[int, int]:
        """Return which of the sorted words from ``first`` to ``stop``, equal so far, have a character at ``length``."""
        return self._narrowed(first, stop, length, character) if first < stop else (first, stop)

    @cached_property
    def _narrowed(self) -> Callable[[int, int, int, str], tuple[int, int]]:
        words = self.words

        @lru_cache(_KEPT_RANGES)
        def narrowed(first: int, stop: int, length: int, character: str) -> tuple[int, int]:
            def there(word: str) -> str:
                return word[length : length + 1]

            return (
                bisect_left(words, character, first, stop, key=there),
                bisect_right(words, character, first, stop, key=there),
            )

        return narrowed

    def spelt(self, begun: str, character: str) -> float:
        """Return p of the next character of an unknown word; those that no spelling knows share one probability."""
        prob = self.spelling.prob(begun, character)
        return prob if self.spelling.knows(character) else prob / self._num_unspelt


class _Reading(NamedTuple):
    """One way to read the characters since the last blank: words that ended there, and the next one so far."""

    context: Words
    """The last words, as many as the model looks back at."""
    ended: Words
    """The words that ended since the last blank."""
    cumulative: NDArray[np.float64]
    """Sums of the probabilities of the next word, in the order of the sorted words, from 0 on."""
    first: int
    stop: int
    """Which of the sorted words go on so."""
    begun: str
    """The next word's characters so far."""
    weight: float
    """What a known word's probability is to be multiplied by for its share."""
    unknown: float
    """The share of all words that the model does not know."""

    def known(self, first: int, stop: int) -> float:
        """Return the share of some of the sorted words."""
        return self.weight * float(self.cumulative[stop] - self.cumulative[first])

    @property
    def share(self) -> float:
        """The reading's share of the probability."""
        return self.known(self.first, self.stop) + self.unknown

    def scaled(self, factor: float) -> "_Reading":
        """Return the reading with its share multiplied."""
        # Of a long unknown word the factors are large.
        weight = self.weight * factor if self.first < self.stop else 0.0
        return self._replace(weight=weight, unknown=self.unknown * factor)


class CharacterPredictor:
    """Reads characters one by one, and says how likely each was."""

    def __init__(self, lexicon: Lexicon, blanks: BlankModel, model: NGramModel) -> None:
        """Begin a text, with a model over the lexicon's words."""
        self._lexicon, self._blanks = lexicon, blanks
        self.words_read: list[int] = []
        """The ids of the words up to the last blank, as they are read most likely."""
        self.use(model)
        self._readings = [self._begun((), (), 1.0)]
        self._is_behind_blank = True

    def use(self, model: NGramModel) -> None:
        """Take a model over the same words for those that begin from now on."""
        self._model = model
        ids, share = self._lexicon.ids, self._lexicon.unknown_share

        @lru_cache(_KEPT_DISTRIBUTIONS)
        def next_word(context: Words) -> tuple[NDArray[np.float64], float]:
            probs = model.next_distribution(np.array(context, np.int64))
            return np.concatenate([[0.0], np.cumsum((1 - share) * probs[ids])]), share + (1 - share) * float(probs[0])

        self._next_word = next_word

    def read(self, character: str) -> float:
        """Return p of the next character after all that were read."""
        before = math.fsum(reading.share for reading in self._readings)
        following = list(self._after_blank(character) if character in BLANKS else self._after_letter(character))
        share = math.fsum(reading.share for reading in following)
        if share <= 0:  # a blank that stands nowhere between the lines and words of train: the text begins anew
            self._readings, self._is_behind_blank = [self._begun((), (), 1.0)], True
            return 0.0
        most = sorted(following, key=lambda reading: -reading.share)[:_MOST_READINGS]
        self._readings = [reading.scaled(1 / share) for reading in most if reading.share >= _LEAST_SHARE * share]
        self._is_behind_blank = character in BLANKS
        return share / before

    def _after_blank(self, blank: str) -> Iterator[_Reading]:
        """Yield what the readings come to with a blank: each context once."""
        if self._is_behind_blank:
            chance = self._blanks.after_blank.get(blank, 0.0)
            yield from (reading.scaled(chance) for reading in self._readings)
            return
        shares: dict[Words, float] = {}
        likeliest: tuple[float, Words] = (-1.0, ())
        for reading in self._readings:
            share = self._ended_share(reading) * self._blanks.after_word.get(blank, 0.0)
            context, ended = self._with_word(reading)
            shares[context] = shares.get(context, 0.0) + share
            likeliest = max(likeliest, (share, ended))
        self.words_read += likeliest[1]
        yield from (self._begun(context, (), share) for context, share in shares.items())

    def _after_letter(self, letter: str) -> Iterator[_Reading]:
        """Yield what the readings come to with a character of a word."""
        if self._is_behind_blank:
            begins = self._blanks.after_blank[WORD_BEGINS]
            yield from (self._extended(reading, letter).scaled(begins) for reading in self._readings)
            return
        silent = self._blanks.after_word.get(SILENT, 0.0)
        for reading in self._readings:
            yield self._extended(reading, letter)
            if (share := self._ended_share(reading) * silent) >= _LEAST_SHARE * reading.share:
                context, ended = self._with_word(reading)
                yield self._extended(self._begun(context, ended, share), letter)

    def _begun(self, context: Words, ended: Words, share: float) -> _Reading:
        """Return a reading whose next word has no character yet."""
        cumulative, unknown = self._next_word(context)
        # The probabilities sum to 1 but for rounding.
        total = float(cumulative[-1]) + unknown
        return _Reading(
            context, ended, cumulative, 0, len(self._lexicon.words), "", share / total, share * unknown / total
        )

    def _extended(self, reading: _Reading, letter: str) -> _Reading:
        """Return a reading whose next word has one more character."""
        first, stop = self._lexicon.narrowed(reading.first, reading.stop, len(reading.begun), letter)
        unknown = reading.unknown * self._lexicon.spelt(reading.begun, letter)
        return reading._replace(first=first, stop=stop, begun=reading.begun + letter, unknown=unknown)

    def _ended_share(self, reading: _Reading) -> float:
        """Return the share of the words that end here."""
        first, stop = self._lexicon.narrowed(reading.first, reading.stop, len(reading.begun), "")
        return reading.known(first, stop) + reading.unknown * self._lexicon.spelling.prob(reading.begun, "")

    def _with_word(self, reading: _Reading) -> tuple[Words, Words]:
        """Return a reading's context and the words that ended, with the one that has begun as one that ends here."""
        word = self._lexicon.id_of.get(reading.begun, 0)
        # A model of order n looks back at n - 1 words.
        context = (*reading.context, word)[1 - self._model.order :] if self._model.order > 1 else ()
        return context, (*reading.ended, word)


def nats_by_characters(
    lexicon: Lexicon,
    blanks: BlankModel,
    model_after: ModelAfter,
    characters: Sequence[str],
    num_times: int = 1,
) -> Nats:
    """Return -log p of characters 2..N of a text, shape ``(N - 1,)``, under a model over words.

    ``model_after`` gives the model for the ids of the words that were read so far: at first, none, and then
    for each of ``num_times`` equal pieces of the text.
    """
    num_scored = max(len(characters) - 1, 0)
    predictor = CharacterPredictor(lexicon, blanks, model_after(()))
    probs = np.ones(num_scored)
    for number, piece in enumerate(pieces(num_scored, num_times)):
        if number == 0:
            predictor.read(lexicon.letter(characters[0]))
        else:
            predictor.use(model_after(predictor.words_read))
        for place in range(piece.start, piece.stop):
            probs[place] = predictor.read(lexicon.letter(characters[place + 1]))
    with np.errstate(divide="ignore"):
        return -np.log(probs)
