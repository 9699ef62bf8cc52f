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

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core import elementary
from seqlm.core.metrics import Nll
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import EvolvingCounts
from seqlm.models.reader import Probs, Reader
from seqlm.models.scored_text import Ids
from seqlm.models.spelling import SpellingModel
from seqlm.ngrams.models.base import NGramModel
from seqlm.vocab.separators import BLANKS, NO_SEPARATOR, WORD_BEGINS, Separators
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

MIN_SHARE = 1e-4
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
        """The ``tokens`` that occur in train according to their ``counts``, sorted.

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
            letter for letter in letters if letter not in BLANKS and letter not in self.spelling
        ]
        self._num_unspelled = max(len(unspelled), 1)
        self.prefix_range = lru_cache(_CACHED_RANGES)(self._find_prefix_range)
        """Returns which of the sorted words from ``first`` to ``stop``, which share their first
        ``length`` characters, have a character at index ``length``."""

    def _find_prefix_range(
        self, first: int, stop: int, length: int, character: str
    ) -> tuple[int, int]:
        at_length = itemgetter(slice(length, length + 1))
        return (
            bisect_left(self.words, character, first, stop, key=at_length),
            bisect_right(self.words, character, first, stop, key=at_length),
        )

    def spelling_prob(self, prefix: str, character: str) -> float:
        """Return p of the next character of an unknown word; characters that no word has share one
        probability."""
        prob = self.spelling.prob(prefix, character)
        return prob if character in self.spelling else prob / self._num_unspelled


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
    """The mass of a known word is its probability times this."""
    unknown_mass: float
    """The mass of the words that the model does not know."""

    def known_mass(self, first: int, stop: int) -> float:
        """Return the mass of some of the sorted words."""
        return self.weight * float(self.cumulative[stop] - self.cumulative[first])

    @property
    def mass(self) -> float:
        """The hypothesis's share of the probability."""
        return self.known_mass(self.first, self.stop) + self.unknown_mass

    def scaled(self, factor: float) -> "_Hypothesis":
        """Return the hypothesis with its mass multiplied."""
        # In a long unknown word the factors are large.
        weight = self.weight * factor if self.first < self.stop else 0.0
        return self._replace(weight=weight, unknown_mass=self.unknown_mass * factor)


class State(NamedTuple):
    """What is known after some characters of a text."""

    hypotheses: Sequence[_Hypothesis]
    is_after_blank: bool


class Step(NamedTuple):
    """What reading a character gives."""

    prob: float
    """p of the character."""
    state: State
    """The state after it."""
    words: Words = ()
    """After a blank, the ids of the words since the blank before, according to the most likely
    hypothesis."""


def _total(hypotheses: Iterable[_Hypothesis]) -> float:
    return math.fsum(hypothesis.mass for hypothesis in hypotheses)


class CharacterPredictor:
    """Predicts characters with a model over words, which gives the words that begin."""

    def __init__(self, lexicon: Lexicon, model: NGramModel) -> None:
        """A predictor with a model over the words of the lexicon."""
        self._lexicon, self._separators, self._model = lexicon, lexicon.separators, model
        self._next_word = lru_cache(_CACHED_DISTRIBUTIONS)(self._find_next_word)

    def _find_next_word(self, context: Words) -> tuple[NDArray[np.float64], float]:
        """Return the cumulative probabilities of the sorted words, from 0, and p of ``<unk>``."""
        probs = self._model.next_distribution(np.array(context, np.int64))
        return np.append(0, np.cumsum(probs[self._lexicon.ids])), float(probs[0])

    def begin(self) -> State:
        """Return the state before a text, which begins with a word."""
        return State([self._new_word((), (), 1.0)], True)

    def step(self, state: State, character: str) -> Step:
        """Return p of the next token of the characters' vocabulary, and what is known after it."""
        letter = _UNKNOWN_LETTER if character == UNKNOWN else character
        is_blank, following, words = letter in BLANKS, state.hypotheses, Words()
        if state.is_after_blank:
            prob = self._separators.after_blank.get(letter if is_blank else WORD_BEGINS, 0.0)
            if not is_blank:
                following = [self._after_letter(hypothesis, letter) for hypothesis in following]
            following = [hypothesis.scaled(prob) for hypothesis in following]
        elif is_blank:
            following, words = self._end_word(following, letter)
        else:
            following = self._continue_word(following, letter)
        mass = _total(following)
        if mass <= 0:  # a blank that never occurs between words of train: begin a new text
            return Step(0.0, self.begin(), words)
        by_mass = sorted(following, key=lambda hypothesis: -hypothesis.mass)
        likely = [
            hypothesis.scaled(1 / mass)
            for hypothesis in by_mass[:MAX_HYPOTHESES]
            if hypothesis.mass >= MIN_SHARE * mass
        ]
        prob = mass / _total(state.hypotheses)
        return Step(prob, State(likely, is_blank), words)

    def _end_word(
        self, hypotheses: Sequence[_Hypothesis], blank: str
    ) -> tuple[list[_Hypothesis], Words]:
        """Return the hypotheses after the first blank after a word, one for each context, and the
        words of the most likely one."""
        mass_of_context: dict[Words, float] = {}
        likeliest: tuple[float, Words] = (-1.0, ())
        prob = self._separators.after_word.get(blank, 0.0)
        for hypothesis in hypotheses:
            mass, context, ended = self._after_word(hypothesis, prob)
            mass_of_context[context] = mass_of_context.get(context, 0.0) + mass
            likeliest = max(likeliest, (mass, ended))
        following = [self._new_word(context, (), mass) for context, mass in mass_of_context.items()]
        return following, likeliest[1]

    def _continue_word(self, hypotheses: Sequence[_Hypothesis], letter: str) -> list[_Hypothesis]:
        """Return the hypotheses after a letter after a letter: of the same word, and, if a word may
        end without a separator, of the next one."""
        following = [self._after_letter(hypothesis, letter) for hypothesis in hypotheses]
        prob = self._separators.after_word.get(NO_SEPARATOR, 0.0)
        # A word that begins here can only lose probability to its first letter.
        min_mass = MIN_SHARE * _total(following)
        for hypothesis in hypotheses if prob else ():
            mass, context, ended = self._after_word(hypothesis, prob)
            if mass > min_mass:
                new_word = self._new_word(context, ended, mass)
                following.append(self._after_letter(new_word, letter))
        return following

    def _new_word(self, context: Words, ended: Words, mass: float) -> _Hypothesis:
        """Return a hypothesis whose next word has no character yet."""
        cumulative, unknown = self._next_word(context)
        # The probabilities sum to 1, except for rounding.
        total = float(cumulative[-1]) + unknown
        return _Hypothesis(
            context,
            ended,
            cumulative,
            first=0,
            stop=len(self._lexicon.words),
            prefix="",
            weight=mass / total,
            unknown_mass=mass * unknown / total,
        )

    def _after_letter(self, hypothesis: _Hypothesis, letter: str) -> _Hypothesis:
        """Return a hypothesis whose next word has one more character."""
        prefix, lexicon = hypothesis.prefix, self._lexicon
        first, stop = lexicon.prefix_range(hypothesis.first, hypothesis.stop, len(prefix), letter)
        return hypothesis._replace(
            first=first,
            stop=stop,
            prefix=prefix + letter,
            unknown_mass=hypothesis.unknown_mass * lexicon.spelling_prob(prefix, letter),
        )

    def _after_word(self, hypothesis: _Hypothesis, prob: float) -> tuple[float, Words, Words]:
        """Return the mass of the words that end here before a separator of this probability, and
        the hypothesis's context and words, followed by the word."""
        prefix, lexicon = hypothesis.prefix, self._lexicon
        known = lexicon.prefix_range(hypothesis.first, hypothesis.stop, len(prefix), "")
        unknown_mass = hypothesis.unknown_mass * lexicon.spelling.prob(prefix, "")
        mass = (hypothesis.known_mass(*known) + unknown_mass) * prob
        word = lexicon.id_of.get(prefix, 0)
        # A model of order n looks back at n - 1 words.
        order = self._model.order
        context = (*hypothesis.context, word)[1 - order :] if order > 1 else ()
        return mass, context, (*hypothesis.ended, word)


class CharacterReader(Reader):
    """Reads characters with a model over words, which may keep counting them."""

    def __init__(
        self, lexicon: Lexicon, characters: Sequence[str], recounting: EvolvingCounts
    ) -> None:
        """Begin a text; ``characters`` are the tokens."""
        self._lexicon, self._characters, self._recounting = lexicon, characters, recounting
        self._words: list[int] = []
        self._num_read = 0
        self._count()
        self._state = self._predictor.begin()

    def _count(self) -> None:
        """Predict with the model that has counted the words so far."""
        model = self._recounting.model_after(self._words)
        self._predictor = CharacterPredictor(self._lexicon, model)

    def _advance(self, character: str) -> float:
        prob, self._state, words = self._predictor.step(self._state, character)
        self._words += words
        return prob

    def nll(self, characters: Sequence[str]) -> Nll:
        """Return -log p of characters 2 to N of a text, shape ``(N - 1,)``.

        The words read so far are counted at the beginning of each part of the text, and predict
        those that begin there.
        """
        probs = np.ones(max(len(characters) - 1, 0))
        for character in characters[:1]:
            self._advance(character)
        for part in self._recounting.parts(len(probs)):
            if part.start:
                self._count()
            for position in part:
                probs[position] = self._advance(characters[position + 1])
        return -elementary.log(probs)

    def _read(self, token_id: int) -> None:
        self._advance(self._characters[token_id])
        self._num_read += 1
        if self._recounting.is_due(self._num_read):
            self._count()

    def next_probs(self) -> Probs:
        steps = (self._predictor.step(self._state, character) for character in self._characters)
        return np.array([step.prob for step in steps])


class CharFromWords(LanguageModel):
    """A model over words that is read as a model over characters; it may keep counting the words
    that it reads."""

    def __init__(
        self, info: ModelInfo, characters: Vocab, words: Vocab, recounting: EvolvingCounts
    ) -> None:
        """A model over ``characters``; ``recounting`` gives the model over ``words``."""
        super().__init__(info, characters)
        assert words.separators is not None
        self._lexicon = Lexicon(words.tokens, words.counts, characters.tokens, words.separators)
        self._recounting = recounting

    def _token_nll(self, ids: Ids) -> Nll:
        return self._reader().nll(self.vocab.decode(ids.tolist()))

    def _reader(self) -> CharacterReader:
        return CharacterReader(self._lexicon, self.vocab.tokens, self._recounting)
