"""A model over words, read as a model over characters.

The probability of a character is the share of the words that continue with it. After ``th``, an
``e`` has the share that the words beginning with ``the`` have among those beginning with ``th``.
Words outside the vocabulary share the probability of ``<unk>`` by their spelling. So a model over
words predicts the same tokens as a model over characters, and the two can be mixed.

If lines are joined by nothing, a word may end without a sign of it, and the next one begins. Then
several hypotheses about the characters since the last blank are kept, each with its probability, as
in the forward algorithm of hidden Markov models (Rabiner 1989). Those that are unlikely after the
next character are dropped.
"""

import copy
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core import elementary
from seqlm.core.metrics import Nll
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel, Probs, Reader
from seqlm.models.ngrams import EvolvingCounts
from seqlm.models.scored_text import Ids
from seqlm.models.spelling import SpellingModel
from seqlm.ngrams.models.base import NGramModel
from seqlm.vocab.separators import BLANKS, NO_SEPARATOR, WORD_BEGINS, Separators
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

LEAST_SHARE = 1e-4
"""A hypothesis with a smaller share of the probability is dropped: with all, reading takes four
times as long."""
MAX_HYPOTHESES = 16
_CACHED_DISTRIBUTIONS = 64
"""Distributions of the next word that are cached; with a large vocabulary, each is large."""
_CACHED_RANGES = 100_000
"""Prefixes of words whose range in the sorted vocabulary is cached."""

_UNKNOWN_LETTER = "\U0010ffff"
"""Replaces every letter that the characters' vocabulary lacks; no text may contain this
character."""

Words = tuple[int, ...]
"""Ids of words, in the order of the text."""


class Lexicon:
    """The sorted words that a model knows, the spelling of all others, and what separates words."""

    def __init__(
        self,
        tokens: Sequence[str],
        counts: Sequence[int],
        characters: Sequence[str],
        separators: Separators,
    ) -> None:
        """Sort those ``tokens`` that occur in train according to their ``counts``.

        ``characters`` are the tokens of the characters' vocabulary, with ``<unk>``; ``separators``
        are probabilities.
        """
        self.separators, letters = separators, set(characters)
        self.id_of: dict[str, int] = {}
        for index, (token, count) in enumerate(zip(tokens, counts, strict=True)):
            if token != UNKNOWN and count > 0:
                word = "".join(letter if letter in letters else _UNKNOWN_LETTER for letter in token)
                self.id_of.setdefault(word, index)
        self.words = sorted(self.id_of)
        self.ids = np.array([self.id_of[word] for word in self.words], np.int64)
        self.spelling = SpellingModel(list(self.id_of))
        unspelled = [
            letter for letter in letters if letter not in BLANKS and not self.spelling.knows(letter)
        ]
        self._num_unspelled = max(len(unspelled), 1)
        self.prefix_range = lru_cache(_CACHED_RANGES)(self._find_prefix_range)
        """Returns which of the sorted words from ``first`` to ``stop``, which share their first
        ``length`` characters, have a character at index ``length``."""

    def _find_prefix_range(
        self, first: int, stop: int, length: int, character: str
    ) -> tuple[int, int]:
        def at_length(word: str) -> str:
            return word[length : length + 1]

        return (
            bisect_left(self.words, character, first, stop, key=at_length),
            bisect_right(self.words, character, first, stop, key=at_length),
        )

    def spelling_prob(self, prefix: str, character: str) -> float:
        """Return p of the next character of an unknown word; characters that no word has share one
        probability."""
        prob = self.spelling.prob(prefix, character)
        return prob if self.spelling.knows(character) else prob / self._num_unspelled

    def nll(self, characters: Sequence[str], recounting: EvolvingCounts) -> Nll:
        """Return -log p of characters 2 to N of a text, shape ``(N - 1,)``, under a model over
        words.

        It counts the words read so far at the beginning of each part of the text, and predicts
        those that begin there.
        """
        predictor, probs = (
            CharacterPredictor(self, recounting.model_after(())),
            np.ones(max(len(characters) - 1, 0)),
        )
        for character in characters[:1]:
            predictor.read(character)
        for part in recounting.parts(len(probs)):
            if part.start:
                predictor.use(recounting.model_after(predictor.words_read))
            for place in part:
                probs[place] = predictor.read(characters[place + 1])
        return -elementary.log(probs)


class _Hypothesis(NamedTuple):
    """One way to divide the characters since the last blank into words, and into the beginning of
    the next word."""

    context: Words
    """The last words, as many as the model uses."""
    ended: Words
    """The words since the last blank."""
    cumulative: NDArray[np.float64]
    """Cumulative probabilities of the next word, in the order of the sorted words, from 0."""
    first: int
    stop: int
    """The range of the sorted words that begin with ``prefix``."""
    prefix: str
    """The characters of the next word so far."""
    weight: float
    """The share of a known word is its probability times this."""
    unknown: float
    """The share of the words that the model does not know."""

    def known(self, first: int, stop: int) -> float:
        """Return the share of some of the sorted words."""
        return self.weight * float(self.cumulative[stop] - self.cumulative[first])

    @property
    def share(self) -> float:
        """The hypothesis's share of the probability."""
        return self.known(self.first, self.stop) + self.unknown

    def scaled(self, factor: float) -> "_Hypothesis":
        """Return the hypothesis with its share multiplied."""
        # In a long unknown word the factors are large.
        weight = self.weight * factor if self.first < self.stop else 0.0
        return self._replace(weight=weight, unknown=self.unknown * factor)


class CharacterPredictor:
    """Reads characters one by one and returns the probability of each."""

    def __init__(self, lexicon: Lexicon, model: NGramModel) -> None:
        """Begin a text with a model over the words of the lexicon."""
        self._lexicon, self._separators = lexicon, lexicon.separators
        self.words_read: list[int] = []
        """The ids of the words up to the last blank, according to the most likely hypothesis."""
        self.use(model)
        self._hypotheses = [self._new_word((), (), 1.0)]
        self._is_after_blank = True

    def use(self, model: NGramModel) -> None:
        """Use another model over the same words for the words that begin from now on."""
        self._model = model
        ids = self._lexicon.ids

        @lru_cache(_CACHED_DISTRIBUTIONS)
        def next_word(context: Words) -> tuple[NDArray[np.float64], float]:
            probs = model.next_distribution(np.array(context, np.int64))
            return np.concatenate([[0.0], np.cumsum(probs[ids])]), float(probs[0])

        self._next_word = next_word

    def prob(self, character: str) -> float:
        """Return p of a token of the characters' vocabulary without reading it."""
        ahead = copy.copy(
            self
        )  # reading replaces what a predictor knows, except for the list of words
        ahead.words_read = []
        return ahead.read(character)

    def read(self, character: str) -> float:
        """Return p of the next token of the characters' vocabulary, and read it."""
        character = _UNKNOWN_LETTER if character == UNKNOWN else character
        before = math.fsum(each.share for each in self._hypotheses)
        following = list(
            self._after_blank(character) if character in BLANKS else self._after_letter(character)
        )
        share = math.fsum(each.share for each in following)
        if share <= 0:  # a blank that never occurs between words of train: begin a new text
            self._hypotheses, self._is_after_blank = [self._new_word((), (), 1.0)], True
            return 0.0
        most = sorted(following, key=lambda each: -each.share)[:MAX_HYPOTHESES]
        self._hypotheses = [
            each.scaled(1 / share) for each in most if each.share >= LEAST_SHARE * share
        ]
        self._is_after_blank = character in BLANKS
        return share / before

    def _after_blank(self, blank: str) -> Iterator[_Hypothesis]:
        """Yield the hypotheses after a blank, one for each context."""
        if self._is_after_blank:
            chance = self._separators.after_blank.get(blank, 0.0)
            yield from (each.scaled(chance) for each in self._hypotheses)
            return
        shares: dict[Words, float] = {}
        likeliest: tuple[float, Words] = (-1.0, ())
        for hypothesis in self._hypotheses:
            share = self._ended_share(hypothesis) * self._separators.after_word.get(blank, 0.0)
            context, ended = self._with_word(hypothesis)
            shares[context] = shares.get(context, 0.0) + share
            likeliest = max(likeliest, (share, ended))
        self.words_read += likeliest[1]
        yield from (self._new_word(context, (), share) for context, share in shares.items())

    def _after_letter(self, letter: str) -> Iterator[_Hypothesis]:
        """Yield the hypotheses after a character of a word."""
        if self._is_after_blank:
            begins = self._separators.after_blank[WORD_BEGINS]
            yield from (self._extended(each, letter).scaled(begins) for each in self._hypotheses)
            return
        extended = [self._extended(each, letter) for each in self._hypotheses]
        yield from extended
        unseparated = self._separators.after_word.get(NO_SEPARATOR, 0.0)
        # A word that begins here can only lose probability to its first letter.
        least = LEAST_SHARE * math.fsum(each.share for each in extended)
        for hypothesis in self._hypotheses:
            if (share := self._ended_share(hypothesis) * unseparated) > least:
                context, ended = self._with_word(hypothesis)
                yield self._extended(self._new_word(context, ended, share), letter)

    def _new_word(self, context: Words, ended: Words, share: float) -> _Hypothesis:
        """Return a hypothesis whose next word has no character yet."""
        cumulative, unknown = self._next_word(context)
        # The probabilities sum to 1, except for rounding.
        total = float(cumulative[-1]) + unknown
        return _Hypothesis(
            context,
            ended,
            cumulative,
            0,
            len(self._lexicon.words),
            "",
            share / total,
            share * unknown / total,
        )

    def _extended(self, hypothesis: _Hypothesis, letter: str) -> _Hypothesis:
        """Return a hypothesis whose next word has one more character."""
        first, stop = self._lexicon.prefix_range(
            hypothesis.first, hypothesis.stop, len(hypothesis.prefix), letter
        )
        unknown = hypothesis.unknown * self._lexicon.spelling_prob(hypothesis.prefix, letter)
        return hypothesis._replace(
            first=first, stop=stop, prefix=hypothesis.prefix + letter, unknown=unknown
        )

    def _ended_share(self, hypothesis: _Hypothesis) -> float:
        """Return the share of the words that end here."""
        first, stop = self._lexicon.prefix_range(
            hypothesis.first, hypothesis.stop, len(hypothesis.prefix), ""
        )
        return hypothesis.known(first, stop) + hypothesis.unknown * self._lexicon.spelling.prob(
            hypothesis.prefix, ""
        )

    def _with_word(self, hypothesis: _Hypothesis) -> tuple[Words, Words]:
        """Return a hypothesis's context and words, followed by the word that ends here."""
        word = self._lexicon.id_of.get(hypothesis.prefix, 0)
        # A model of order n looks back at n - 1 words.
        context = (
            (*hypothesis.context, word)[1 - self._model.order :] if self._model.order > 1 else ()
        )
        return context, (*hypothesis.ended, word)


class CharFromWords(LanguageModel):
    """A model over words that is read as a model over characters; it may keep counting the words
    that it reads."""

    def __init__(
        self, info: ModelInfo, characters: Vocab, lexicon: Lexicon, recounting: EvolvingCounts
    ) -> None:
        """Take what the model is, the vocabulary of characters, the words, and how the model over
        words counts."""
        super().__init__(info, characters)
        self._lexicon, self._recounting = lexicon, recounting

    def _token_nll(self, ids: Ids) -> Nll:
        return self._lexicon.nll(self.vocab.decode(ids.tolist()), self._recounting)

    def reader(self) -> Reader:
        """Return a reader of characters."""
        return _CharacterReader(self._lexicon, self.vocab.tokens, self._recounting)


class _CharacterReader(Reader):
    def __init__(
        self, lexicon: Lexicon, characters: Sequence[str], recounting: EvolvingCounts
    ) -> None:
        self._predictor = CharacterPredictor(lexicon, recounting.model_after(()))
        self._characters, self._recounting, self._num_read = characters, recounting, 0

    def read(self, token: int) -> None:
        self._predictor.read(self._characters[token])
        self._num_read += 1
        if self._recounting.is_due(self._num_read):
            self._predictor.use(self._recounting.model_after(self._predictor.words_read))

    def next_probs(self) -> Probs:
        return np.array([self._predictor.prob(character) for character in self._characters])


def open_char_from_words(
    info: ModelInfo, characters: Vocab, words: Vocab, recounting: EvolvingCounts
) -> CharFromWords:
    """Return a model over words, read as a model over characters."""
    assert words.separators is not None
    lexicon = Lexicon(words.tokens, words.counts, characters.tokens, words.separators)
    return CharFromWords(info, characters, lexicon, recounting)
