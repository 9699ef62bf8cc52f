"""Decoding and cleaning of text, in bounded memory.

A letter and its accent become one character where Unicode has one (NFC), so that all ways to write a text are one text.
Section 8.2 of the book reads a text into lines, cleans each line, and splits it into tokens: every run of characters
other than A-Z and a-z becomes one space; then the ends are stripped and the letters lower-cased. Every function here
works on blocks of a file, so that neither the length of the text nor the length of a line matters, and on bytes of
UTF-8: a letter A-Z is one byte, and no byte of another character looks like one.
"""

import codecs
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import IncrementalNewlineDecoder
from itertools import pairwise
from pathlib import Path
from string import ascii_letters
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES, LINE_END, NUM_CODE_POINTS, SPACE, byte_blocks
from seqlm.core.threads import imap

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_RETURN = ord("\r")

Offsets = NDArray[np.int64]
"""Positions of characters in a text."""


@dataclass
class DecodingReport:
    """What decoding and cleaning found in a text."""

    replaced: int = 0
    """Byte sequences that were not UTF-8 and were replaced, under ``errors="replace"``."""
    letters: int = 0
    """Letters of any script."""
    foreign_letters: int = 0
    """Letters other than A-Z and a-z."""


@dataclass(frozen=True)
class RawText:
    """A text file as it came, and the name by which its owner knows it."""

    path: Path
    name: str
    """What errors call the file."""

    def decoded_blocks(self, errors: str, report: DecodingReport, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Yield the text in NFC, in blocks of UTF-8 that cut no character: line ends are ``\\n``, no byte order mark.

        ``errors`` is ``"strict"`` or ``"replace"`` (counted in ``report``). Raises DataError,
        with the byte offset and the line, for bytes that are not UTF-8 and for NUL bytes.
        """
        return (text.encode() for text in composed(self.decoded(errors, report, block_bytes)))

    def decoded(self, errors: str, report: DecodingReport, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
        """Yield the text in blocks as it is, but for line ends and a byte order mark. Raises as above."""
        decoder = IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(errors), translate=True)
        with self.path.open("rb") as file:
            offset, block = self._skip_byte_order_mark(file), b" "
            while block:
                block = file.read(block_bytes)
                if (nul := block.find(0)) >= 0:
                    raise self._error(offset + nul, "NUL byte", ": this is not a text file")
                offset += len(block)
                data = decoder.getstate()[0] + block
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    advice = ": convert it, or set preprocess.errors: replace"
                    raise self._error(offset - len(data) + error.start, "not UTF-8", advice) from error
                if _REPLACEMENT in text:
                    # Those that the text itself has do not count. Their bytes cannot be parts of other characters.
                    report.replaced += text.count(_REPLACEMENT) - data.count(_REPLACEMENT.encode())
                yield text

    def _skip_byte_order_mark(self, file: BinaryIO) -> int:
        """Move ``file`` past its byte order mark and return the offset."""
        head = file.read(len(codecs.BOM_UTF8))
        if head.startswith(_UTF16_BOMS):
            raise DataError(f"{self.name}: UTF-16 text: convert it to UTF-8 (for example iconv -f UTF-16 -t UTF-8)")
        return file.seek(len(codecs.BOM_UTF8) if head == codecs.BOM_UTF8 else 0)

    def _error(self, offset: int, what: str, advice: str) -> DataError:
        return DataError(f"{self.name}: line {self._line_at(offset)}: {what} at byte {offset}{advice}")

    def _line_at(self, offset: int) -> int:
        """Return the number of the line that has the byte at ``offset``, counted from 1."""
        ends, last = 0, b""
        for block in byte_blocks(self.path, stop=offset):
            ends += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
            last = block[-1:]
        return ends + 1


_MAX_HELD_BACK = 1000
"""Characters that may wait for the next block: more marks on one letter are no text, and would fill the memory."""


def composed(blocks: Iterable[str]) -> Iterator[str]:
    """Yield a text in NFC in blocks; marks that belong to the last letter of a block may follow in the next one."""
    waiting = ""
    for block in blocks:
        text = waiting + block
        end = max(len(text) - 1, 0)
        while end > 0 and _may_compose(text[end]):
            end -= 1
        if len(text) - end > _MAX_HELD_BACK:
            end = len(text)
        if end > 0:
            yield unicodedata.normalize("NFC", text[:end])
        waiting = text[end:]
    if waiting:
        yield unicodedata.normalize("NFC", waiting)


def _may_compose(character: str) -> bool:
    """Return whether a character may become one with a character before it, or change places with it."""
    if character < "\u0300":
        return False
    is_letter_that_does = "\u1160" <= character <= "\u11ff" or "\U00016d40" <= character <= "\U00016d7f"
    return is_letter_that_does or unicodedata.category(character).startswith("M")


_LOWER = bytes(ord(chr(byte).lower()) if chr(byte) in ascii_letters + "\n" else SPACE for byte in range(256))
"""What cleaning makes of each byte: a small letter, a line end, or a space."""
_BLANKS = bytes(byte for byte in range(256) if _LOWER[byte] == SPACE)
_CLEANED_AT_ONCE = 4 * BLOCK_BYTES


def clean_blocks(
    source: RawText, normalise: str, errors: str, report: DecodingReport, block_bytes: int = _CLEANED_AT_ONCE
) -> Iterator[bytes]:
    """Yield the cleaned lines of ``source``, each ended by ``\\n``, in blocks of bytes.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are).
    Lines are kept, empty ones too. ``report`` is complete after the last block. Raises
    DataError as :meth:`RawText.decoded_blocks` does.
    """
    letters, last = _LetterCounter(), b""

    def counted() -> Iterator[bytes]:
        nonlocal last
        for block in source.decoded_blocks(errors, report, block_bytes):
            letters.add(block)
            last = block[-1:]  # before cleaning: a last line that cleaning empties is a line too
            yield block

    yield from imap(_clean_letters, _with_contexts(counted())) if normalise == "letters" else counted()
    if last not in (b"", b"\n"):
        yield b"\n"
    report.foreign_letters = letters.foreign
    report.letters = letters.plain + report.foreign_letters


def clean_text(text: str, normalise: str) -> str:
    """Return a text cleaned as :func:`clean_blocks` does, without its last line end."""
    lines = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    if normalise == "letters":
        # For a sentence this is several times as fast as `_clean_letters`, which is made for long blocks.
        lines = "\n".join([" ".join(line.split()) for line in lines.encode().translate(_LOWER).decode().split("\n")])
    return lines.removesuffix("\n")


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


def _with_contexts(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each block after its context: the last byte before it that is no blank, and a space if blanks follow."""
    context = b"\n"
    for block in blocks:
        text = context + block
        yield text
        kept = text.rstrip(_BLANKS)
        context = kept[-1:] + (b" " if len(kept) < len(text) else b"")


def _clean_letters(text: bytes) -> bytes:
    """Return a block cleaned, without the context that it begins with. A space at its end waits for the next block."""
    values = np.frombuffer(text.translate(_LOWER), np.uint8)
    # A space stays if a letter follows and another character than a line end is before it.
    is_kept = values != SPACE
    is_kept[:-1] |= values[1:] > SPACE
    values = values[is_kept]
    is_kept = values != SPACE
    is_kept[1:] |= values[:-1] != LINE_END
    cleaned: bytes = values[is_kept][1:].tobytes()
    return cleaned


class _LetterCounter:
    """Counts the letters A-Z, and all other letters."""

    def __init__(self) -> None:
        self.plain = 0
        self._others = np.zeros(NUM_CODE_POINTS, np.int64)
        """How often each character outside ASCII occurred, by its code point."""

    def add(self, block: bytes) -> None:
        values = np.frombuffer(block, np.uint8)
        # With its sixth bit set, a letter is one of the 26 bytes from "a" on; smaller bytes wrap around.
        self.plain += int(np.count_nonzero(((values | np.uint8(0x20)) - np.uint8(ord("a"))) < 26))
        if not block.isascii():
            others = values[values >= 0x80].tobytes().decode()
            np.add.at(self._others, np.frombuffer(others.encode("utf-32-le"), np.uint32), 1)

    @property
    def foreign(self) -> int:
        return sum(int(self._others[code]) for code in np.flatnonzero(self._others) if chr(code).isalpha())
