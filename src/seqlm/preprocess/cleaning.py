"""From a raw corpus to three cleaned splits: decoding, cleaning, and splitting in order. A text is held in memory.

A letter and its accent become one character where Unicode has one (NFC), so that all ways to write a text are one text.
Section 8.2 of the book reads a text into lines, cleans each line, and splits it into tokens: every run of characters
other than A-Z and a-z becomes one space; then the ends are stripped and the letters lower-cased. Cleaning works on
bytes of UTF-8: a letter A-Z is one byte, and no byte of another character looks like one.
"""

import math
import re
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from string import ascii_letters

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.files import read_errors, write_bytes
from seqlm.core.memory import require_memory
from seqlm.core.progress import quantity
from seqlm.core.text import LINE_END, SPACE, TextSize


def read_raw(path: Path, name: str) -> bytes:
    """Return a text in UTF-8 as its file has it, but for a byte order mark.

    ``name`` is what errors call the file. Raises DataError, with the byte offset and the line, for bytes that are not
    UTF-8 and for NUL bytes.
    """
    with read_errors(path):
        data = path.read_bytes()
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
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@dataclass(frozen=True)
class Letters:
    """The letters of a text."""

    letters: int
    """Letters of any script."""
    foreign_letters: int
    """Letters other than A-Z and a-z."""

    @classmethod
    def of(cls, text: bytes) -> "Letters":
        """Count the letters of a text in UTF-8."""
        plain, others = 0, Counter[str]()
        for block in _blocks(text):
            plain += len(block.translate(None, _NO_LETTERS))
            others.update(block.translate(None, _ASCII).decode())
        foreign = sum(count for character, count in others.items() if character.isalpha())
        return cls(plain + foreign, foreign)


_NO_LETTERS = bytes(byte for byte in range(256) if chr(byte) not in ascii_letters)
_LOWER = bytes(ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256))
"""What cleaning makes of each byte: a small letter, a line end, or a space."""
_ASCII = bytes(range(0x80))
_BLOCKS = re.compile(rb"(?s).{1,65536}[^\n]*\n?")
"""Whole lines that are worked on at once: they stay in the processor's cache, and few blocks need composing."""


def _blocks(text: bytes) -> Iterator[bytes]:
    """Yield a text in NFC, in blocks of whole lines, which all end in ``\\n``, each without its last line end."""
    for found in _BLOCKS.finditer(text):
        block = _with_one_line_end(found[0]).removesuffix(b"\n")
        yield block if block.isascii() else unicodedata.normalize("NFC", block.decode()).encode()


def clean_text(text: str, normalise: str) -> str:
    """Return the cleaned lines of a text, without its last line end.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are, in NFC). Lines are kept,
    empty ones too.
    """
    return clean(text.encode(), normalise).decode()


def clean(text: bytes, normalise: str) -> bytes:
    """Do the same for a text in UTF-8."""
    return b"\n".join(map(_with_letters_only if normalise == "letters" else bytes, _blocks(text)))


def _with_letters_only(lines: bytes) -> bytes:
    """Return lines as the book cleans them."""
    text = np.frombuffer(b"\n" + lines.translate(_LOWER) + b"\n", np.uint8)  # so that each line is between line ends
    text = text[np.append(True, (text[1:] != SPACE) | (text[:-1] > SPACE))]  # no space after a space or a line end
    text = text[np.append((text[:-1] != SPACE) | (text[1:] != LINE_END), True)]  # none before a line end
    return bytes(text[1:-1].data)


def split_text(text: bytes, fractions: Mapping[str, float]) -> dict[str, bytes]:
    """Split a cleaned text in order into a part for each of the ``fractions``, each ended by a line end.

    The text is cut at the line ends nearest to the fractions of its bytes. If the nearest line end is further away
    than a tenth of the smallest split, the text is cut at the nearest space instead, which becomes a line end. Raises
    DataError if a split would be empty.
    """
    tolerance = len(text) * min(fractions.values()) / 10
    goals = [reached * len(text) for reached in accumulate(fractions.values())][:-1]
    ends = [0, *(_nearest_cut(text, goal, tolerance) for goal in goals), len(text)]
    if any(end <= start for start, end in pairwise(ends)):
        raise DataError("has too few line ends and spaces to be split: break it into lines, such as sentences")
    # The last character of a part is a line end, or a space that becomes one, or something else that one follows.
    ends_early = [end - 1 if text[end - 1 : end] in (b" ", b"\n") else end for end in ends[1:]]
    bounds = zip(fractions, ends[:-1], ends_early, strict=True)
    return {name: text[start:end] + b"\n" for name, start, end in bounds}


def _nearest_cut(text: bytes, goal: float, tolerance: float) -> int:
    """Return the byte after the line end nearest to a byte, or else after the nearest space."""

    def nearest(mark: bytes, reach: int) -> tuple[float, int]:
        """Return how far from the goal the nearest cut is, and its byte."""
        begin, pivot, end = int(max(goal - reach, 0)), int(goal), int(goal + reach)
        found = text.rfind(mark, begin, pivot), text.find(mark, pivot, end)
        return min(((abs(place + 1 - goal), place + 1) for place in found if place >= 0), default=(math.inf, 0))

    distance, cut = nearest(b"\n", math.ceil(tolerance) + 1)
    return cut if distance <= tolerance else nearest(b" ", len(text))[1]


_GUTENBERG = re.compile(rb"\*\*\* ?(?:START|END) OF TH(?:E|IS) PROJECT GUTENBERG EBOOK")
_SEARCHED = 1 << 20
"""How many bytes of a text's beginning and of its end are searched for Project Gutenberg's markers."""

MIN_CHARACTERS = 500
"""Characters of the shortest text that is accepted, so that val and test, a tenth each, have some words to score."""
_FOREIGN_SHARE_WORTH_A_WARNING = 0.01
_MAX_FOREIGN_SHARE = 0.1
"""Of the letters. What is left of a text of another script would be scored as if it were the text."""
_MEMORY_PER_BYTE = 6
"""Bytes of memory that cleaning takes for each byte of a text."""


@dataclass(frozen=True)
class Preprocessed:
    """The size of each split of a corpus, and what a user should know about the text."""

    first_lines: list[str]
    sizes: dict[str, TextSize]
    letters: Letters
    warnings: list[str]


FIRST_LINES = 11
"""Lines that are shown: as many as the book shows."""
_SHOWN = 1 << 14
"""How far they are read: the text may be one long line."""


def clean_and_split(
    path: Path, name: str, folder: Path, normalise: str, fractions: Mapping[str, float]
) -> Preprocessed:
    """Clean the text of a file and write ``NAME.txt`` to ``folder`` for each of the ``fractions``, in order.

    ``name`` is what errors call the file. Raises DataError for text that cannot be decoded, that cleaning drops
    more than a tenth of, or that is too short, and MachineError for one that is too large for this machine's
    memory.
    """
    with read_errors(path):
        require_memory(path.stat().st_size * _MEMORY_PER_BYTE, name)
    raw = read_raw(path, name)
    letters = Letters.of(raw)
    warnings = decoding_warnings(letters, normalise)
    if _GUTENBERG.search(raw[:_SEARCHED]) or _GUTENBERG.search(raw[-_SEARCHED:]):
        warnings.append(
            "the text has Project Gutenberg's header or licence, before its line '*** START OF' and after '*** END OF':"
            " remove them, or models learn from one and are scored on the other"
        )
    try:
        if normalise == "letters" and letters.foreign_letters > _MAX_FOREIGN_SHARE * letters.letters:
            raise DataError(
                f"{letters.foreign_letters:,} of its {letters.letters:,} letters are not A-Z and would be dropped: "
                "keep them with -S preprocess.normalise=none"
            )
        text = clean(raw, normalise) + b"\n"
        del raw
        require_enough(TextSize.of(text), normalise, MIN_CHARACTERS)
        parts = split_text(text, fractions)
        sizes = {split: TextSize.of(part) for split, part in parts.items()}
        for split, size in sizes.items():
            if size.words < 2:
                has = quantity(size.words, "word")
                raise DataError(f"the {split} split has {has}, and needs two: change preprocess.split")
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    for split, part in parts.items():
        write_bytes(folder / f"{split}.txt", part)
    first_lines = next(iter(parts.values()))[:_SHOWN].decode(errors="ignore").split("\n")[:FIRST_LINES]
    return Preprocessed(first_lines, sizes, letters, warnings)


def decoding_warnings(letters: Letters, normalise: str) -> list[str]:
    """Return what a user should know about the cleaning of a text."""
    share = letters.foreign_letters / max(1, letters.letters)
    if normalise != "letters" or share < _FOREIGN_SHARE_WORTH_A_WARNING:
        return []
    return [f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none to keep them"]


def require_enough(size: TextSize, normalise: str, min_characters: int) -> None:
    """Raise DataError if a cleaned text has no words or is too short."""
    if size.words == 0 or size.characters < min_characters:
        other_scripts = ", or set preprocess.normalise: none for other scripts" if normalise == "letters" else ""
        raise DataError(
            f"has only {quantity(size.characters, 'character')} and {quantity(size.words, 'word')} after cleaning: "
            f"use a text of at least {min_characters} characters{other_scripts}"
        )
