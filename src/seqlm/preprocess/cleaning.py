"""Decoding and cleaning of text, in bounded memory.

Section 8.2 of the book reads a text into lines, cleans each line, and makes tokens of
them. Here a *cleaned line* is the unit: its characters are the line itself, its words
are what single spaces part. Every function works on blocks of a file, so that neither
the length of the text nor the length of a line matters.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES

_NOT_LETTERS = re.compile("[^A-Za-z]+")
_NOT_LETTERS_IN_LINES = re.compile("[^A-Za-z\n]+")
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def clean_line(line: str) -> str:
    """Return ``line`` as the book cleans it (section 8.2).

    Every run of characters other than A-Z and a-z becomes one space; then the ends are
    stripped and the letters lower-cased.
    """
    return _NOT_LETTERS.sub(" ", line).strip().lower()


@dataclass
class DecodingReport:
    """What decoding and cleaning met on the way."""

    replaced: int = 0
    """Bytes sequences that were not UTF-8 and were replaced, under ``errors="replace"``."""
    letters: int = 0
    """Letters of any script."""
    foreign_letters: int = 0
    """Letters other than A-Z and a-z."""


def decode_blocks(path: Path, errors: str, report: DecodingReport) -> Iterator[str]:
    """Yield the text of a file in blocks, with line ends as ``\\n`` and no byte order mark.

    ``errors`` is ``"strict"`` or ``"replace"`` (counted in ``report``). Raises DataError,
    with the offset in bytes, for bytes that are not UTF-8 and for NUL bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    ends_with_return = False
    with path.open("rb") as file:
        offset = _skip_byte_order_mark(path, file)
        while True:
            block = file.read(BLOCK_BYTES)
            if (nul := block.find(0)) >= 0:
                raise DataError(f"{path}: NUL byte at byte {offset + nul}: this is not a text file")
            text = _decode(decoder, block, errors, path, offset, report)
            offset += len(block)
            if ends_with_return:
                text = "\r" + text
            # A return at the end of a block may be the first half of a CRLF.
            ends_with_return = bool(block) and text.endswith("\r")
            text = text[:-1] if ends_with_return else text
            yield text.replace("\r\n", "\n").replace("\r", "\n")
            if not block:
                return


def _skip_byte_order_mark(path: Path, file: BinaryIO) -> int:
    """Leave ``file`` behind its byte order mark and return the offset there."""
    head = file.read(len(codecs.BOM_UTF8))
    if head.startswith(_UTF16_BOMS):
        raise DataError(f"{path}: UTF-16 text: convert it to UTF-8 (for example iconv -f UTF-16 -t UTF-8)")
    return file.seek(len(codecs.BOM_UTF8) if head == codecs.BOM_UTF8 else 0)


def _decode(
    decoder: codecs.IncrementalDecoder, block: bytes, errors: str, path: Path, offset: int, report: DecodingReport
) -> str:
    """Decode one block; ``offset`` is where it begins in the file."""
    pending = decoder.getstate()[0]  # the bytes of a character that the last block cut in two
    data = pending + block
    pieces: list[str] = []
    while True:
        decoder.reset()
        try:
            pieces.append(decoder.decode(data, final=not block))
            return "".join(pieces)
        except UnicodeDecodeError as error:
            if errors == "strict":
                where = offset + len(block) - len(data) + error.start
                raise DataError(
                    f"{path}: not UTF-8 at byte {where}: convert it, or set preprocess.errors: replace"
                ) from error
            report.replaced += 1
            pieces.append(data[: error.start].decode("utf-8") + "\N{REPLACEMENT CHARACTER}")
            data = data[error.end :]


def clean_file(source: Path, target: TextIO, normalise: str, errors: str) -> DecodingReport:
    """Write the cleaned lines of ``source`` to ``target``, each ended by ``\\n``.

    ``normalise`` is ``"letters"`` (the book's cleaning) or ``"none"`` (lines as they are).
    Lines are kept, empty ones too. Raises DataError as :func:`decode_blocks` does.
    """
    report = DecodingReport()
    cleaner = _LetterCleaner() if normalise == "letters" else None
    last = ""
    for block in decode_blocks(source, errors, report):
        _count_letters(block, report)
        cleaned = cleaner.clean(block) if cleaner else block
        target.write(cleaned)
        last = block[-1:] or last  # of the text itself: a last line that cleaning empties is a line too
    if last not in ("", "\n"):
        target.write("\n")
    return report


class _LetterCleaner:
    """:func:`clean_line` for text that comes in blocks that may cut a line anywhere."""

    def __init__(self) -> None:
        self._line_is_empty = True
        self._space_is_due = False

    def clean(self, block: str) -> str:
        text = _NOT_LETTERS_IN_LINES.sub(" ", block).lower()
        if not text:
            return ""
        if text[0] == " " or self._space_is_due:
            text = ("" if self._line_is_empty else " ") + text.lstrip(" ")
            if text[:2] == " \n":
                text = text[1:]
        # A space at the end waits: the next block may end the line.
        self._space_is_due = text.endswith(" ") or (text == "" and self._space_is_due)
        text = text.rstrip(" ").replace(" \n", "\n").replace("\n ", "\n")
        if text:
            self._line_is_empty = text.endswith("\n")
        return text


def _count_letters(block: str, report: DecodingReport) -> None:
    foreign = 0
    if not block.isascii():
        foreign = sum(character.isalpha() for character in block if character > "\x7f")
    report.foreign_letters += foreign
    report.letters += foreign + len(block) - len(re.sub("[A-Za-z]", "", block))
