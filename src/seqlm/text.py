"""Cleaning, counting and splitting of text, in bounded memory.

Section 8.2 of the book reads a text into lines, cleans each line, and makes tokens of
them. Here a *cleaned line* is the unit: its characters are the line itself, its words
are what single spaces part. Every function works on blocks of a file, so that neither
the length of the text nor the length of a line matters.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from seqlm.errors import DataError
from seqlm.files import read_text

BLOCK_BYTES = 1 << 20
_NOT_LETTERS = re.compile("[^A-Za-z]+")
_NOT_LETTERS_IN_LINES = re.compile("[^A-Za-z\n]+")
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def clean_line(line: str) -> str:
    """Return ``line`` as the book cleans it (section 8.2).

    Every run of characters other than A-Z and a-z becomes one space; then the ends are
    stripped and the letters lower-cased.
    """
    return _NOT_LETTERS.sub(" ", line).strip().lower()


def words(line: str) -> list[str]:
    """Return the words of a cleaned line: what spaces part."""
    return [word for word in line.split(" ") if word]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that this pipeline wrote, without their line ends.

    Raises DataError where it is missing or is not UTF-8.
    """
    # Not splitlines(): raw text may hold other characters that Unicode counts as line ends.
    return read_text(path).removesuffix("\n").split("\n")


def read_first_lines(path: Path, limit: int) -> Iterator[str]:
    """Yield the first lines of a text file that this pipeline wrote, at most a block of text in all."""
    lines = next(text_blocks(path), "").split("\n")
    yield from lines[:limit]


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


@dataclass(frozen=True)
class Counts:
    """Size of a text: lines, characters (line ends not counted) and words."""

    lines: int
    characters: int
    words: int


def text_blocks(path: Path) -> Iterator[str]:
    """Yield a text file that this pipeline wrote in blocks. Raises DataError where it is missing or broken."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file: run the stage that writes it") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: it was not written by this pipeline") from error


def count_text(path: Path) -> Counts:
    """Return the size of a text file whose lines all end in ``\\n``."""
    lines = characters = num_words = 0
    in_word = False
    for block in text_blocks(path):
        ends = block.count("\n")
        lines += ends
        characters += len(block) - ends
        num_words += len(words(block.replace("\n", " ")))
        # A word that a block border cuts was counted on both sides.
        num_words -= in_word and block[0] not in " \n"
        in_word = block[-1] not in " \n"
    return Counts(lines, characters, num_words)


def split_text(source: Path, targets: Mapping[str, TextIO], fractions: Mapping[str, float]) -> None:
    """Part a cleaned text in order and write each part to its target, every line ended by ``\\n``.

    The cuts lie at the line ends nearest the fractions of the text's characters. Where
    the nearest line end is further off than a tenth of the smallest split, the text has
    too few lines, and the cut lies at the nearest space, which becomes a line end.
    Raises DataError where a split would be empty.
    """
    total = sum(len(block) for block in text_blocks(source))
    tolerance = total * min(fractions.values()) / 10
    goals, reached = [], 0.0
    for fraction in list(fractions.values())[:-1]:
        reached += fraction
        goals.append(reached * total)
    cuts = _nearest_cuts(source, goals, tolerance)
    ends = [*cuts, total]
    if any(end <= start for start, end in zip([0, *cuts], ends, strict=True)):
        raise DataError(
            f"{source.name}: {total} characters in too few lines and words to split into {', '.join(fractions)}: "
            "bring a longer text"
        )
    _write_parts(source, list(targets.values()), ends)


def _nearest_cuts(source: Path, goals: list[float], tolerance: float) -> list[int]:
    """Return for each goal the offset just behind the nearest line end, or else the nearest space."""
    nearest: dict[tuple[int, str], int] = {}
    start = 0
    for block in text_blocks(source):
        for index, goal in enumerate(goals):
            pivot = min(max(int(goal) - start, 0), len(block))
            for mark in "\n ":
                for found in (block.rfind(mark, 0, pivot), block.find(mark, pivot)):
                    cut = start + found + 1
                    old = nearest.get((index, mark))
                    if found >= 0 and (old is None or abs(cut - goal) < abs(old - goal)):
                        nearest[index, mark] = cut
        start += len(block)
    cuts = []
    for index, goal in enumerate(goals):
        cut = nearest.get((index, "\n"), 0)
        if abs(cut - goal) > tolerance:
            cut = nearest.get((index, " "), 0)
        cuts.append(cut)
    return cuts


def _write_parts(source: Path, targets: list[TextIO], ends: list[int]) -> None:
    start, part, last = 0, 0, "\n"
    for block in text_blocks(source):
        position = 0
        while position < len(block):
            stop = min(len(block), ends[part] - start)
            piece = block[position:stop]
            is_end = start + stop == ends[part]
            if is_end and piece.endswith(" "):
                piece = piece[:-1] + "\n"
            targets[part].write(piece)
            last = piece[-1:] or last
            position = stop
            if is_end and part < len(targets) - 1:
                part += 1
        start += len(block)
    if last != "\n":
        targets[part].write("\n")
