"""The units of a text whose surprisals are listed: tokens, characters, words and lines, and where they are in it.

A token belongs to the unit of one character of the text, its anchor: its first character that is no blank, or its first
one. A blank belongs to a word before or after it, which matters when surprisals are compared with reading times
(Pimentel and Meister 2024, Oh and Schuler 2024). Words and lines are those of the original text, as readers saw it: a
word that cleaning divides is one unit, and so is a word of which cleaning leaves nothing.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import ParamsError
from seqlm.core.text import LINE_END, SPACE
from seqlm.preprocess.cleaning import CleanedText
from seqlm.score.settings import SPACES, UNITS, By, Space
from seqlm.score.surprisal_view import per_character
from seqlm.vocab.vocabulary import Vocab

Indices = NDArray[np.int64]

_LINE_END = re.compile(r"\r\n|\r|\n")
_INK = re.compile(r"\S")
_WORD = {"letters": re.compile(r"\S+"), "none": re.compile(r"[^ \r\n]+")}
"""A word of the original text: without cleaning only spaces and line ends separate words."""
Bits = NDArray[np.float64]


@dataclass(frozen=True)
class ReadText:
    """A text that is scored, after what a model reads before it without being scored."""

    cleaned: CleanedText
    """The context, if there is one, followed by the text."""
    context_chars: int = 0
    """Characters of the original that are context."""
    num_blanks: int = 0
    """Spaces that are read first."""
    scores_blank: bool = True
    """Whether the blank between the context and the text is scored with the text."""

    @property
    def text(self) -> str:
        """All that is read: spaces, context and text, cleaned."""
        return " " * self.num_blanks + self.cleaned.text if self.num_blanks else self.cleaned.text

    @property
    def original(self) -> str:
        """The text as it was given, without its context."""
        return self.cleaned.original[self.context_chars :]

    @cached_property
    def spans(self) -> tuple[Indices, Indices]:
        """Where in :attr:`original` the part begins and ends that each character of :attr:`text` replaces."""
        blanks = np.zeros(self.num_blanks, np.int64)
        starts, ends = (
            np.concatenate([blanks, np.maximum(found - self.context_chars, 0)]) for found in self.cleaned.spans
        )
        return starts, ends

    @property
    def first(self) -> int:
        """The index in :attr:`text` of the first character of the text itself."""
        if not self.context_chars:
            return self.num_blanks
        return int(np.searchsorted(self.cleaned.spans[0], self.context_chars)) + self.num_blanks

    @property
    def has_text(self) -> bool:
        """Whether cleaning leaves a character of the text itself."""
        return len(self.text) > self.first

    @property
    def begin(self) -> int:
        """The index in :attr:`text` of the first character that is scored if anything is read before it."""
        if not self.context_chars:
            return min(self.num_blanks, 1)
        has_blank = self.first > 0 and self.has_text and self.text[self.first - 1] in " \n"
        return self.first - (has_blank and self.scores_blank)


@dataclass(frozen=True)
class TokensInText:
    """A cleaned text, its tokens, and where they are."""

    text: str
    """With its line ends."""
    vocab: Vocab
    all_tokens: Sequence[str]
    known_anchors: Indices | None = None
    """The anchors, if some tokens are marks."""
    is_mark: NDArray[np.bool_] | None = None
    """Which tokens are marks, which are no part of the text."""
    first: int = 0
    """The index of the first token that matters here: the tokens before it belong to a context."""

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens from the first one that matters."""
        return self.all_tokens[self.first :] if self.first else self.all_tokens

    @cached_property
    def anchors(self) -> Indices:
        """For each of the tokens the index of a character of the text, to whose unit it belongs."""
        found = self.known_anchors
        return (anchors(self.text, self.vocab, self.all_tokens) if found is None else found)[self.first :]

    def spans(self) -> tuple[Indices, Indices]:
        """Return where in the text each token begins and ends; a mark or a further byte of a character is empty."""
        lengths = self.vocab.lengths(self.all_tokens)
        if self.vocab.token_kind.is_lossless:
            places, ends = _places(self.text, self.vocab), np.cumsum(lengths)
            stops = np.append(0, places + 1)[ends]
            begins = np.where(lengths > 0, np.append(places, 0)[ends - lengths], stops)
            return begins[self.first :], stops[self.first :]
        if self.is_mark is not None:
            lengths[self.is_mark] = 0
        return self.anchors, self.anchors + lengths[self.first :]


def _places(text: str, vocab: Vocab) -> Indices:
    """Return the indices of the characters that are part of tokens: all, or all but the line ends."""
    return np.flatnonzero(~_blanks(text)[0]) if vocab.line_separator == "" else np.arange(len(text))


def anchors(text: str, vocab: Vocab, tokens: Sequence[str]) -> Indices:
    """Return the anchor of each token of a text."""
    is_blank = _blanks(text)[1]
    if not vocab.token_kind.is_lossless:
        return np.flatnonzero(~is_blank & np.append(True, is_blank[:-1])[: len(text)])
    places = _places(text, vocab)
    if vocab.token_kind.is_character:
        return places
    lengths = vocab.lengths(tokens)
    ends = np.cumsum(lengths)
    starts = np.where(lengths > 0, ends - lengths, np.maximum(ends - 1, 0))  # a byte that continues a character
    inked = np.where(is_blank[places], len(places), np.arange(len(places)))
    next_inked = np.minimum.accumulate(inked[::-1])[::-1]
    starts = np.minimum(starts, len(places) - 1)
    return places[np.where(next_inked[starts] < ends, next_inked[starts], starts)]


def check_units(vocab: Vocab, by: By, space: Space) -> None:
    """Raise ParamsError if tokens of this vocabulary cannot be divided into these units."""
    kind = vocab.token_kind
    if by not in UNITS or space not in SPACES:
        choice = f"by must be {', '.join(UNITS)}, and space {' or '.join(SPACES)}"
        raise ParamsError(f"by = {by!r}, space = {space!r}: {choice}")
    if by == "char" and not kind.is_lossless:
        raise ParamsError(f"a model over {kind.noun}s has no surprisal of a character: set by to word or line")
    if by == "word" and space == "after" and kind.is_lossless and not kind.is_character:
        raise ParamsError(f"the {kind.noun}s of this model include the space before a word: set space to before")


class Units(NamedTuple):
    """The units of a text in order, in columns of one length."""

    text: list[str]
    """The cleaned text of each unit; empty if cleaning leaves nothing of it."""
    original: list[str]
    """Each unit as it is in the original text."""
    start: Indices
    """Where it begins in the original text, in characters."""
    end: Indices
    """Where it ends there."""
    bits: Bits
    """The sum of the bits of its tokens; nan for a unit without a scored token."""
    unknown: NDArray[np.bool_]
    """Whether one of its tokens is unknown."""
    reason: list[str]
    """Why bits are missing, or what they lack; empty for others."""


Spans = Sequence[tuple[int, int]]
"""Where units begin and end in the original text."""


@dataclass(frozen=True)
class ScoredUnits:
    """A text as tokens with bits, from which units of any kind are made."""

    read: ReadText
    tokens: TokensInText
    bits: Bits
    """Of each token; nan for one that is not scored."""
    is_unknown: NDArray[np.bool_]
    """Of each token."""
    num_context: int
    """Tokens at the beginning that belong to the context."""

    def units(self, by: By, space: Space, words: Spans | None = None) -> Units:
        """Return the units; ``words``: the spans of the words, if they are not what white space separates.

        Raises ParamsError if the tokens cannot be divided into these units.
        """
        check_units(self.tokens.vocab, by, space)
        if by == "word":
            spans = _spans_of_words(self.read) if words is None else words
            return self._sums(spans, _words_of_characters(self.read, spans, space))
        if by == "line":
            return self._sums(_spans_of_lines(self.read), _lines_of_characters(self.read, space))
        return _with_removed(self.read, self._parts(by))

    @property
    def _own(self) -> slice:
        """The tokens of the text itself. A text without a character may have a mark, which belongs to no unit."""
        return slice(self.num_context if self.read.has_text else len(self.bits), None)

    def _parts(self, by: By) -> Units:
        """Return the tokens or characters; the characters of a subword share its bits equally."""
        kind, own = self.tokens.vocab.token_kind, self._own
        texts, bits, unknown = list(self.tokens.tokens[own]), self.bits[own], self.is_unknown[own]
        begins, stops = (places[own] for places in self.tokens.spans())
        if by == "char" and not kind.is_character:
            texts, values = per_character(kind, texts, bits.tolist())
            bits, unknown = np.array(values), np.zeros(len(texts), bool)
            places = _places(self.read.text, self.tokens.vocab)
            begins = places[len(places) - len(texts) :]
            stops = begins + 1
        starts, ends = self.read.spans
        # Marks of the end of a sentence may be anywhere in the last word.
        last = np.maximum.accumulate(np.append(0, ends)[stops])
        first = np.where(begins < stops, np.append(starts, 0)[begins], last)
        reasons = [_NOT_SCORED.format(kind.noun) if missing else "" for missing in np.isnan(bits)]
        return Units(texts, _originals(self.read, first, last), first, last, bits, unknown, reasons)

    def _sums(self, spans: Spans, units: Indices) -> Units:
        """Return units with the sums of their tokens; ``units`` has for each character that is read its unit."""
        own, noun = self._own, self.tokens.vocab.token_kind.noun
        bits, of_token = self.bits[own], units[self.tokens.anchors[own]]
        is_scored, number = ~np.isnan(bits), len(spans)
        sums = np.bincount(of_token[is_scored], bits[is_scored], number).astype(np.float64)
        has_scored = np.bincount(of_token[is_scored], minlength=number) > 0
        sums[~has_scored] = np.nan
        texts, starts = _texts(self.read, units, number), np.array([start for start, _ in spans], np.int64)
        reasons = [""] * number
        for index in np.flatnonzero(~has_scored).tolist():
            shown = self.read.original[slice(*spans[index])]
            reasons[index] = _CONTINUES if texts[index] else REMOVED if shown.strip() else "empty"
        if (first := self._first_unscored()) is not None:
            index = int(units[first])
            reasons[index] = (_WITHOUT_FIRST if has_scored[index] else _NOT_SCORED).format(noun)
        unknown = np.bincount(of_token, self.is_unknown[own], number) > 0
        ends = np.array([end for _, end in spans], np.int64)
        return Units(texts, _originals(self.read, starts, ends), starts, ends, sums, unknown, reasons)

    def _first_unscored(self) -> int | None:
        """Return the anchor of the first token of the text if it is not scored; the mark of a beginning needs none."""
        if (
            self.num_context
            or not self.read.has_text
            or not len(self.tokens.tokens)
            or self.tokens.known_anchors is not None
        ):
            return None
        return int(self.tokens.anchors[0])


REMOVED = "removed by cleaning"
_NOT_SCORED = "not scored: the first {}"
_WITHOUT_FIRST = "without the first {}"
_CONTINUES = "part of the token before"


def _with_removed(read: ReadText, units: Units) -> Units:
    """Return units with a row for each part of the original that cleaning removed and none of them contains.

    White space gets no row.
    """
    edges = zip([0, *units.end.tolist()], [*units.start.tolist(), len(read.original)], strict=True)
    gaps = [(index, *_stripped(read.original, *edge)) for index, edge in enumerate(edges)]
    if not (removed := [gap for gap in gaps if gap[1] < gap[2]]):
        return units
    places, starts, ends = (list(column) for column in zip(*removed, strict=True))
    all_starts, all_ends = np.insert(units.start, places, starts), np.insert(units.end, places, ends)
    return Units(
        np.insert(np.array(units.text, object), places, "").tolist(),
        _originals(read, all_starts, all_ends),
        all_starts,
        all_ends,
        np.insert(units.bits, places, math.nan),
        np.insert(units.unknown, places, False),
        np.insert(np.array(units.reason, object), places, REMOVED).tolist(),
    )


def _originals(read: ReadText, starts: Indices, ends: Indices) -> list[str]:
    original = read.original
    return [original[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the ends of a part of a text without the white space around it."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def spans_of_given_words(text: str, words: Sequence[str]) -> Spans:
    """Return where words are in a text, one after the other, with nothing but white space between them.

    Raises ParamsError, with the position of the word, if the text is not made of these words.
    """
    spans, end = [], 0
    for index, word in enumerate(words):
        start = end if text.startswith(word, end) else _next_ink(text, end)
        if not text.startswith(word, start):
            found = text[start : start + len(word)]
            raise ParamsError(f"words[{index}] = {word!r}: the text has {found!r} there: give the words of the text")
        end = start + len(word)
        spans.append((start, end))
    if (start := _next_ink(text, end)) < len(text):
        rest = text[start : start + 20]
        raise ParamsError(f"the text continues with {rest!r} after the last word: give all its words")
    return spans


def _next_ink(text: str, start: int) -> int:
    """Return where the first character is, from a place on, that is no white space."""
    found = _INK.search(text, start)
    return found.start() if found else len(text)


def _spans_of_words(read: ReadText) -> Spans:
    found = [found.span() for found in _WORD[read.cleaned.normalise].finditer(read.original)]
    # Blanks without any word are one unit.
    return found if found or not read.has_text else [(0, len(read.original))]


def _spans_of_lines(read: ReadText) -> Spans:
    original = read.original
    ends = [found.span() for found in _LINE_END.finditer(original)]
    if ends and ends[-1][1] == len(original):  # it ends the last line
        original = original[: ends.pop()[0]]
    return list(zip([0, *(end for _, end in ends)], [*(start for start, _ in ends), len(original)], strict=True))


def _words_of_characters(read: ReadText, spans: Spans, space: Space) -> Indices:
    """Return for each character that is read the index of its word; those of a context get the first word."""
    units, is_blank = np.zeros(len(read.text), np.int64), _blanks(read.text)[1]
    inked = np.flatnonzero(~is_blank[read.first :]) + read.first
    if not len(inked) or not spans:
        return units
    firsts = np.array([start for start, _ in spans], np.int64)
    words = np.maximum(np.searchsorted(firsts, read.spans[0][inked], side="right") - 1, 0)
    # A blank belongs to a word before or after it; those at both ends have one on one side only.
    places = np.arange(len(units))
    nearest = np.searchsorted(inked, places) if space == "before" else np.searchsorted(inked, places, "right") - 1
    return np.asarray(words[np.clip(nearest, 0, len(inked) - 1)])


def _lines_of_characters(read: ReadText, space: Space) -> Indices:
    """Return for each character that is read the index of its line."""
    is_end = _blanks(read.text)[0]
    is_end[: read.first] = False
    ends = np.cumsum(is_end)
    return np.asarray(np.minimum(ends, is_end.sum()) if space == "before" else ends - is_end)


def _texts(read: ReadText, units: Indices, number: int) -> list[str]:
    """Return the cleaned text of each unit, without the blanks at its ends."""
    inked = np.flatnonzero(~_blanks(read.text)[1][read.first :]) + read.first
    texts, of_inked = [""] * number, units[inked]
    is_first = np.append(True, of_inked[1:] != of_inked[:-1])[: len(inked)]
    firsts, lasts = np.flatnonzero(is_first), np.flatnonzero(np.roll(is_first, -1))
    for first, last in zip(inked[firsts].tolist(), inked[lasts].tolist(), strict=True):
        texts[units[first]] = read.text[first : last + 1].replace("\n", " ")
    return texts


def _blanks(text: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which characters of a text are line ends, and which are line ends or spaces."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_end = codes == LINE_END
    return is_end, is_end | (codes == SPACE)
