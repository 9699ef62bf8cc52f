"""Decoding and cleaning of text.

A letter and its accent become one character where Unicode has one (NFC), so that all ways to write a text are one text.
Section 8.2 of the book reads a text into lines, cleans each line, and splits it into tokens: every run of characters
other than A-Z and a-z becomes one space; then the ends are stripped and the letters lower-cased. Cleaning works on
bytes of UTF-8: a letter A-Z is one byte, and no byte of another character looks like one.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_errors
from seqlm.core.text import LINE_END, SPACE


def read_raw(path: Path, name: str) -> str:
    """Return a text file as it is, but for a byte order mark and line ends, which become ``\\n``.

    ``name`` is what errors call the file. Raises DataError, with the byte offset and the line, for bytes that are not
    UTF-8 and for NUL bytes.
    """
    with read_errors(path):
        data = path.read_bytes()
    offset, problem = data.find(0), "NUL byte at byte {}: this is not a text file"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        offset, problem = error.start, "not UTF-8 at byte {}: convert it, for example with iconv -f ENCODING -t UTF-8"
    if offset >= 0:
        before = data[:offset].replace(b"\r\n", b"\n")
        line = before.count(b"\n") + before.count(b"\r") + 1
        raise DataError(f"{name}: line {line}: {problem.format(offset)}")
    del data  # a text that is not in English may take four times as much
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
        plain, others = 0, Counter[str]()
        for block in _blocks(text):
            plain += len(block.encode().translate(None, _NO_LETTERS))
            if not block.isascii():
                others.update(block.encode().translate(None, _ASCII).decode())
        foreign = sum(count for character, count in others.items() if character.isalpha())
        return cls(plain + foreign, foreign)


_NO_LETTERS = bytes(byte for byte in range(256) if chr(byte) not in ascii_letters)
_LOWER = bytes(ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256))
"""What cleaning makes of each byte: a small letter, a line end, or a space."""
_ASCII = bytes(range(0x80))
_LONG = 10_000
"""Bytes of a text that NumPy cleans faster than a loop over its lines."""
_BLOCK = 1 << 16
"""Characters that are worked on at once: they stay in the processor's cache, and few blocks need composing."""


def _blocks(text: str) -> Iterator[str]:
    """Yield a text in NFC, in blocks of whole lines, each without its last line end."""
    start = 0
    while start <= len(text):
        end = text.find("\n", start + _BLOCK)
        end = end if end >= 0 else len(text)
        yield unicodedata.normalize("NFC", text[start:end])
        start = end + 1


def clean_text(text: str, normalise: str) -> str:
    """Return the cleaned lines of a text, without its last line end.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are, in NFC). Lines are kept,
    empty ones too.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = _with_letters_only if normalise == "letters" else str
    cleaned = "\n".join(map(clean, _blocks(lines)))
    return cleaned.removesuffix("\n") if lines.endswith("\n") else cleaned


def _with_letters_only(lines: str) -> str:
    """Return lines as the book cleans them."""
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
