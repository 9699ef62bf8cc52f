"""The units of a text whose surprisals are listed: tokens, characters, words and lines.

A token belongs to the unit of one character of the text, its anchor: its first character that is no blank, or its first
one. A blank belongs to a word before or after it, which matters when surprisals are compared with reading times
(Pimentel and Meister 2024, Oh and Schuler 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import ParamsError
from seqlm.core.text import LINE_END, SPACE, words
from seqlm.score.settings import By, Space
from seqlm.score.surprisal_view import per_character
from seqlm.vocab.vocabulary import Vocab

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class TokensInText:
    """A cleaned text, its tokens, and where they are."""

    text: str
    """With its line ends."""
    vocab: Vocab
    tokens: Sequence[str]
    anchors: Indices
    """For each token the index of a character of the text, to whose unit it belongs."""


def anchors(text: str, vocab: Vocab, tokens: Sequence[str]) -> Indices:
    """Return the anchor of each token of a text."""
    is_end, is_blank = _blanks(text)
    if not vocab.token_kind.is_lossless:
        return np.flatnonzero(_begins(is_blank))
    # The characters that are part of tokens: all, or all but the line ends.
    places = np.flatnonzero(~is_end) if vocab.line_separator == "" else np.arange(len(text))
    if vocab.token_kind.is_character:
        return places
    lengths = vocab.lengths(tokens)
    ends = np.cumsum(lengths)
    starts = np.where(lengths > 0, ends - lengths, np.maximum(ends - 1, 0))  # a byte that continues a character
    inked = np.where(is_blank[places], len(places), np.arange(len(places)))
    next_inked = np.minimum.accumulate(inked[::-1])[::-1]
    starts = np.minimum(starts, len(places) - 1)
    return places[np.where(next_inked[starts] < ends, next_inked[starts], starts)]


def unit_texts(text: TokensInText, by: By) -> Sequence[str]:
    """Return the text of each unit."""
    if by == "token":
        return text.tokens
    if by == "char":
        return list(text.text.replace("\n", text.vocab.line_separator))
    return text.text.split("\n") if by == "line" else words(text.text.replace("\n", " "))


def unit_bits(text: TokensInText, bits: NDArray[np.float64], by: By, space: Space) -> NDArray[np.float64]:
    """Return the sum of the bits of each unit's tokens; nan for a unit without a scored token.

    A subword's characters share its bits equally. Raises ParamsError if the tokens cannot be divided into these units.
    """
    kind = text.vocab.token_kind
    if by == "char" and not kind.is_lossless:
        raise ParamsError(f"a model over {kind.noun}s has no surprisal of a character: set by to word or line")
    if by == "word" and space == "after" and kind.is_lossless and not kind.is_character:
        raise ParamsError(f"the {kind.noun}s of this model include the space before a word: set space to before")
    if by == "token" or (by == "char" and kind.is_character):
        return bits
    if by == "char":
        return np.array(per_character(kind, text.tokens, bits.tolist())[1])
    units, is_scored = _units_of_characters(text.text, by, space), ~np.isnan(bits)
    of_token, num_units = units[text.anchors[is_scored]], int(units.max(initial=-1)) + 1
    sums: NDArray[np.float64] = np.bincount(of_token, bits[is_scored], num_units).astype(np.float64)
    sums[np.bincount(of_token, minlength=num_units) == 0] = np.nan
    return sums


def _units_of_characters(text: str, by: By, space: Space) -> Indices:
    """Return for each character the index of its word or line."""
    is_end, is_blank = _blanks(text)
    if by == "line":
        ends = np.cumsum(is_end)
        return np.asarray(np.minimum(ends, text.count("\n")) if space == "before" else ends - is_end)
    num_begun = np.cumsum(_begins(is_blank))
    # Blanks at the beginning and at the end of the text have a word on one side only.
    units: Indices = num_begun - ~is_blank if space == "before" else num_begun - 1
    return np.minimum(np.maximum(units, 0), max(int(num_begun[-1]) - 1, 0))


def _blanks(text: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which characters of a text are line ends, and which are line ends or spaces."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_end = codes == LINE_END
    return is_end, is_end | (codes == SPACE)


def _begins(is_blank: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which characters begin a word."""
    return np.asarray(~is_blank & np.concatenate([[True], is_blank[:-1]]))
