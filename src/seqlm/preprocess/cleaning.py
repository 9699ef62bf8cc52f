"""Decoding and cleaning a text, which is held in memory.

A letter and its accent become one character where Unicode has one (NFC), so that all ways to write
a text are one text. Section 8.2 of the book reads a text into lines, cleans each line, and splits
it into tokens: every run of characters other than A-Z and a-z becomes one space; then the ends are
stripped and the letters lower-cased. Cleaning works on bytes of UTF-8: a letter A-Z is one byte,
and no byte of another character looks like one.
"""

import re
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.progress import count_noun
from seqlm.core.text import LINE_END, LINE_ENDS, SPACE, TextSize


def decode_raw(data: bytes, name: str) -> bytes:
    """Return a text in UTF-8 as its file has it, but for a byte order mark.

    ``name`` is what errors call the file. Raises DataError, with the byte offset and the line, for
    bytes that are not UTF-8 and for NUL bytes.
    """
    offset, problem = data.find(0), "NUL byte at byte {}: this is not a text file"
    try:
        for block in _BLOCKS.finditer(data):
            block[0].decode()
    except UnicodeDecodeError as error:
        offset = block.start() + error.start
        problem = "not UTF-8 at byte {}: convert it, for example with iconv -f ENCODING -t UTF-8"
    if offset >= 0:
        line = _with_one_line_end(data[:offset]).count(b"\n") + 1
        raise DataError(f"{name}: line {line}: {problem.format(offset)}")
    return data.removeprefix(BOM_UTF8)


def _with_one_line_end(text: bytes) -> bytes:
    # To search for two bytes takes much longer than for one.
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


@dataclass(frozen=True)
class Letters:
    """The letters of a text."""

    letters: int
    """Letters of any script."""
    foreign_letters: int
    """Letters other than A-Z and a-z."""
    characters: int
    """Characters of any kind, except blanks."""

    @classmethod
    def of(cls, text: bytes) -> "Letters":
        """Count the letters of a text in UTF-8."""
        by_byte, counts = np.zeros(256, np.int64), Counter[str]()
        for block in _blocks(text):
            by_byte += np.bincount(np.frombuffer(block, np.uint8), minlength=256)
            counts.update(block.translate(None, _ASCII).decode())
        counts.update(dict(zip(map(chr, _ASCII), by_byte.tolist(), strict=False)))
        letters = sum(count for character, count in counts.items() if character.isalpha())
        visible = sum(count for character, count in counts.items() if not character.isspace())
        return cls(letters, letters - sum(map(counts.__getitem__, ascii_letters)), visible)

    @property
    def dropped_share(self) -> float:
        """The share of the characters, blanks aside, that are not A-Z or a-z."""
        return 1 - (self.letters - self.foreign_letters) / max(self.characters, 1)


_LOWER = bytes(
    ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256)
)
"""What cleaning makes of each byte: a small letter, a line end, or a space."""
_ASCII = bytes(range(0x80))
_BLOCKS = re.compile(rb"(?s).{1,65536}[^\n]*\n?")
"""Whole lines that are worked on at once: they stay in the processor's cache, and few blocks need
composing."""


_RARE_LINE_ENDS = [end.encode() for end in LINE_ENDS[2:]]


def _blocks(text: bytes, line_ends: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Yield a text in NFC, in blocks of whole lines, which all end in ``\\n``, each without its
    last line end; ``line_ends`` end lines too."""
    for found in _BLOCKS.finditer(text):
        block = _with_one_line_end(found[0])
        is_ascii = block.isascii()
        for line_end in line_ends:
            if not is_ascii or len(line_end) == 1:  # to search for a longer one takes much longer
                block = block.replace(line_end, b"\n")
        block = block.removesuffix(b"\n")
        yield block if is_ascii else unicodedata.normalize("NFC", block.decode()).encode()


def clean_text(text: str, normalise: str) -> str:
    """Return the cleaned lines of a text, without its last line end.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are, in NFC; a
    form feed and the other line ends of Unicode end lines too). Lines are kept, empty ones too.
    """
    if normalise == "none" and text.isascii() and text.isprintable():
        return text  # as most sentences are
    return clean(text.encode(), normalise).decode()


def clean(text: bytes, normalise: str) -> bytes:
    """Do the same for a text in UTF-8."""
    if normalise == "letters":
        return b"\n".join(map(_with_letters_only, _blocks(text)))
    return b"\n".join(_blocks(text, _RARE_LINE_ENDS))


def _with_letters_only(lines: bytes) -> bytes:
    """Return lines as the book cleans them."""
    # Each line is between line ends.
    text = np.frombuffer(b"\n" + lines.translate(_LOWER) + b"\n", np.uint8)
    # No space after a space or a line end, and none before a line end.
    text = text[1:][(text[1:] != SPACE) | (text[:-1] > SPACE)]
    text = text[:-1][(text[:-1] != SPACE) | (text[1:] != LINE_END)]
    return bytes(text.data)


_FOREIGN_SHARE_WORTH_A_WARNING = 0.01


def decoding_warnings(letters: Letters, normalise: str) -> list[str]:
    """Return what a user should know about the cleaning of a text."""
    share = letters.foreign_letters / max(1, letters.letters)
    if normalise != "letters" or share < _FOREIGN_SHARE_WORTH_A_WARNING:
        return []
    return [
        f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none "
        "to keep them"
    ]


def require_enough(size: TextSize, normalise: str, min_characters: int) -> None:
    """Raise DataError if a cleaned text has no words or is too short."""
    if size.words == 0 or size.characters < min_characters:
        other_scripts = (
            ", or set preprocess.normalise: none for other scripts"
            if normalise == "letters"
            else ""
        )
        raise DataError(
            f"has only {count_noun(size.characters, 'character')} and "
            f"{count_noun(size.words, 'word')} after cleaning: "
            f"use a text of at least {min_characters} characters{other_scripts}"
        )
