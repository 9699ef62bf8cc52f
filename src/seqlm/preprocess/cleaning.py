"""Cleaning of text, in bounded memory.

Section 8.2 of the book reads a text into lines, cleans each line, and makes tokens of
them. Here a *cleaned line* is the unit: its characters are the line itself, its words
are what single spaces part. Every function works on blocks of a file, so that neither
the length of the text nor the length of a line matters, and on bytes of UTF-8: a letter
A-Z is one byte there, and no byte of another character looks like one.
"""

import re
from collections.abc import Iterator
from string import ascii_letters

import numpy as np

from seqlm.core.text import BLOCK_BYTES, LINE_END, SPACE
from seqlm.preprocess.decoding import DecodingReport, RawText

_NOT_LETTERS = re.compile("[^A-Za-z]+")
_LOWER = bytes(ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256))
"""For each byte what cleaning makes of it: a small letter, a line end, or a space."""


def clean_line(line: str) -> str:
    """Return ``line`` as the book cleans it (section 8.2).

    Every run of characters other than A-Z and a-z becomes one space; then the ends are
    stripped and the letters lower-cased.
    """
    return _NOT_LETTERS.sub(" ", line).strip().lower()


def clean_blocks(
    source: RawText, normalise: str, errors: str, report: DecodingReport, block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """Yield the cleaned lines of ``source``, each ended by ``\\n``, in blocks of bytes.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are).
    Lines are kept, empty ones too. What was met on the way is counted in ``report``, whole
    when the last block has come. Raises DataError as :meth:`RawText.decoded_blocks` does.
    """
    cleaner = _LetterCleaner() if normalise == "letters" else None
    letters = _LetterCounter()
    last = b""
    for block in source.decoded_blocks(errors, report, block_bytes):
        letters.add(block)
        yield cleaner.clean(block) if cleaner else block
        last = block[-1:]  # of the text itself: a last line that cleaning empties is a line too
    if last not in (b"", b"\n"):
        yield b"\n"
    report.letters, report.foreign_letters = letters.total, letters.foreign


class _LetterCleaner:
    """:func:`clean_line` for text that comes in blocks that may cut a line anywhere."""

    def __init__(self) -> None:
        self._before = LINE_END
        """The last byte that was kept: a line end, or a letter."""
        self._space_is_due = False
        """A space at the end of a block waits: the next block may end the line."""

    def clean(self, block: bytes) -> bytes:
        due = b" " if self._space_is_due else b""
        text = np.frombuffer(bytes([self._before]) + due + block.translate(_LOWER), np.uint8)
        self._space_is_due = bool(text[-1] == SPACE)
        # Of several spaces the last one stays, unless it is the text's last byte.
        is_kept = text != SPACE
        is_kept[:-1] |= is_kept[1:]
        text = text[is_kept]
        # None stays beside a line end.
        is_end = text == LINE_END
        is_kept = text != SPACE
        is_kept[1:-1] |= ~(is_end[:-2] | is_end[2:])
        text = text[is_kept]
        self._before = int(text[-1])
        cleaned: bytes = text[1:].tobytes()
        return cleaned


class _LetterCounter:
    """Counts letters, and those among them that are not A-Z."""

    def __init__(self) -> None:
        self._plain = 0
        self._others = np.zeros(0, np.int64)
        """How often each character occurred that is not ASCII, by its code point."""

    def add(self, block: bytes) -> None:
        values = np.frombuffer(block, np.uint8)
        # With its sixth bit set, a letter lies within 26 of a small a; what lies below wraps around.
        self._plain += int(np.count_nonzero(((values | np.uint8(0x20)) - np.uint8(ord("a"))) < 26))
        if not block.isascii():
            others = values[values >= 0x80].tobytes().decode()
            found = np.bincount(np.frombuffer(others.encode("utf-32-le"), np.uint32))
            if len(found) > len(self._others):
                self._others, found = found, self._others
            self._others[: len(found)] += found

    @property
    def foreign(self) -> int:
        return sum(int(self._others[code]) for code in np.flatnonzero(self._others) if chr(code).isalpha())

    @property
    def total(self) -> int:
        return self._plain + self.foreign
