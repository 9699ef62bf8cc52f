"""Decoding and cleaning of text.

A letter and its accent become one character where Unicode has one (NFC), so that all ways to write a text are one text.
Section 8.2 of the book reads a text into lines, cleans each line, and splits it into tokens: every run of characters
other than A-Z and a-z becomes one space; then the ends are stripped and the letters lower-cased. Cleaning works on
bytes of UTF-8: a letter A-Z is one byte, and no byte of another character looks like one.
"""

import codecs
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_errors
from seqlm.core.text import LINE_END, SPACE

# That of UTF-32 begins with one of UTF-16.
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}  # fmt: skip
_RETURN = ord("\r")

Offsets = NDArray[np.int64]
"""Positions of characters in a text."""


def read_raw(path: Path, name: str) -> str:
    """Return a text file as it is, but for a byte order mark and line ends, which become ``\\n``.

    ``name`` is what errors call the file. Raises DataError, with the byte offset and the line, for bytes that are not
    UTF-8 and for NUL bytes.
    """
    with read_errors(path):
        data = path.read_bytes()
    for mark, encoding in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            advice = f"convert it to UTF-8 (for example iconv -f {encoding} -t UTF-8)"
            raise DataError(f"{name}: {encoding} text: {advice}")

    def fail(offset: int, what: str, advice: str) -> DataError:
        before = data[:offset].replace(b"\r\n", b"\n")
        line = before.count(b"\n") + before.count(b"\r") + 1
        return DataError(f"{name}: line {line}: {what} at byte {offset}: {advice}")

    if (nul := data.find(0)) >= 0:
        raise fail(nul, "NUL byte", "this is not a text file")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise fail(error.start, "not UTF-8", "convert it") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True)
class Letters:
    """The letters of a text."""

    letters: int
    """Letters of any script."""
    foreign_letters: int
    """Letters other than A-Z and a-z."""

    @classmethod
    def of(cls, text: str) -> "Letters":
        """Count the letters of a text."""
        data = unicodedata.normalize("NFC", text).encode()
        plain = len(data.translate(None, _NO_LETTERS))
        if data.isascii():
            return cls(plain, 0)
        others = data.translate(None, bytes(range(0x80))).decode()
        counts = np.bincount(np.frombuffer(others.encode("utf-32-le"), np.uint32))
        foreign = sum(int(counts[code]) for code in np.flatnonzero(counts).tolist() if chr(code).isalpha())
        return cls(plain + foreign, foreign)


_NO_LETTERS = bytes(byte for byte in range(256) if chr(byte) not in ascii_letters)
_LOWER = bytes(ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256))
"""What cleaning makes of each byte: a small letter, a line end, or a space."""
_LONG = 10_000
"""Bytes of a text that NumPy cleans faster than a loop over its lines."""


def clean_text(text: str, normalise: str) -> str:
    """Return the cleaned lines of a text, without its last line end.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are, in NFC). Lines are kept,
    empty ones too.
    """
    lines = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if normalise != "letters":
        return lines
    plain = lines.encode().translate(_LOWER)
    if len(plain) < _LONG:
        return "\n".join([" ".join(line.split()) for line in plain.decode().split("\n")])
    values = np.frombuffer(plain, np.uint8)
    # A space stays if a letter follows and another character than a line end is before it.
    is_kept = values != SPACE
    is_kept[:-1] |= values[1:] > SPACE
    values = values[is_kept]
    is_kept = values != SPACE
    is_kept[1:] |= values[:-1] != LINE_END
    cleaned: bytes = values[is_kept].tobytes()
    return cleaned.decode()


def _may_compose(character: str) -> bool:
    """Return whether a character may become one with a character before it, or change places with it."""
    if character < "\u0300":
        return False
    is_letter_that_does = "\u1160" <= character <= "\u11ff" or "\U00016d40" <= character <= "\U00016d7f"
    return is_letter_that_does or unicodedata.category(character).startswith("M")


@dataclass(frozen=True)
class CleanedText:
    """A text cleaned as :func:`clean_text` does, and which part of the original each of its characters replaces."""

    original: str
    normalise: str

    @cached_property
    def text(self) -> str:
        """The cleaned text."""
        return clean_text(self.original, self.normalise)

    @cached_property
    def spans(self) -> tuple[Offsets, Offsets]:
        """Where the parts of the original begin and end that the characters of the cleaned text replace.

        Both have shape ``(len(text),)``. A letter replaces itself, a space or a line end the whole run of characters
        between two letters. So each part ends where the next one begins, and only what is before the first part or
        after the last one was removed without replacement.
        """
        codes, bounds = _compose_with_bounds(self.original)
        kept = np.arange(len(codes))
        if self.normalise == "letters":
            lower = codes | 0x20
            is_letter = (codes < 0x80) & (lower >= ord("a")) & (lower <= ord("z"))
            codes = np.where(is_letter, ord("a"), np.where(codes == LINE_END, LINE_END, SPACE))
            # As in `_clean_letters`.
            kept = np.flatnonzero((codes != SPACE) | (np.append(codes[1:], LINE_END) > SPACE))
            is_first = np.append(LINE_END, codes[kept][:-1]) == LINE_END
            kept = kept[(codes[kept] != SPACE) | ~is_first]
        kept = kept[: len(self.text)]
        starts, ends, is_blank = bounds[kept], bounds[kept + 1], codes[kept] <= SPACE
        ends[:-1] = np.where(is_blank[:-1], starts[1:], ends[:-1])
        starts[1:] = ends[:-1]
        return starts, ends


def _compose_with_bounds(text: str) -> tuple[Offsets, Offsets]:
    """Return the N code points of a text in NFC with ``\\n`` as line ends, and what they stand for in the text.

    Code point i stands for the characters from ``bounds[i]`` to ``bounds[i + 1]``; shape of the bounds: ``(N + 1,)``.
    """
    starts: list[int] = []
    if unicodedata.is_normalized("NFC", text):
        composed_text, bounds = text, np.arange(len(text) + 1)
    else:
        firsts = [0, *(place for place in range(1, len(text)) if not _may_compose(text[place])), len(text)]
        parts = [unicodedata.normalize("NFC", text[first:end]) for first, end in pairwise(firsts)]
        for part, first, end in zip(parts, firsts, firsts[1:], strict=False):
            # If letters and marks became fewer, the last one stands for all that are left.
            starts += [min(first + index, end) for index in range(len(part))]
        composed_text, bounds = "".join(parts), np.array([*starts, len(text)])
    codes = np.frombuffer(composed_text.encode("utf-32-le"), np.uint32).astype(np.int64)
    is_pair = np.append((codes[:-1] == _RETURN) & (codes[1:] == LINE_END), False)[: len(codes)]
    # The line end of "\r\n" stands for both.
    bounds[1:][is_pair] = bounds[:-1][is_pair]
    return np.where(codes == _RETURN, LINE_END, codes)[~is_pair], np.append(bounds[:-1][~is_pair], bounds[-1])
