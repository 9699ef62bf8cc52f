"""From raw text to vocabularies in plain Python, one token at a time: what the fast code is held against.

These functions are the definition. They are slow, and nobody but the tests uses them.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError

_NOT_LETTERS_IN_LINES = re.compile("[^A-Za-z\n]+")
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass
class Report:
    replaced: int = 0
    letters: int = 0
    foreign_letters: int = 0


def clean_line(line: str) -> str:
    """Return a line as the book cleans it (section 8.2)."""
    return re.sub("[^A-Za-z]+", " ", line).strip().lower()


def clean(path: Path, normalise: str, errors: str, block_bytes: int = 1 << 20) -> tuple[str, Report]:
    """Return the cleaned text of a file, and what was met on the way."""
    report, target = Report(), StringIO()
    cleaner = _LetterCleaner() if normalise == "letters" else None
    last = ""
    for block in decode_blocks(path, errors, report, block_bytes):
        _count_letters(block, report)
        target.write(cleaner.clean(block) if cleaner else block)
        last = block[-1:] or last
    if last not in ("", "\n"):
        target.write("\n")
    return target.getvalue(), report


def decode_blocks(path: Path, errors: str, report: Report, block_bytes: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    ends_with_return = False
    with path.open("rb") as file:
        offset = _skip_byte_order_mark(file)
        while True:
            block = file.read(block_bytes)
            if (nul := block.find(0)) >= 0:
                raise DataError(f"NUL byte at byte {offset + nul}")
            text = _decode(decoder, block, errors, offset, report)
            offset += len(block)
            if ends_with_return:
                text = "\r" + text
            ends_with_return = bool(block) and text.endswith("\r")
            text = text[:-1] if ends_with_return else text
            yield text.replace("\r\n", "\n").replace("\r", "\n")
            if not block:
                return


def _skip_byte_order_mark(file: BinaryIO) -> int:
    head = file.read(len(codecs.BOM_UTF8))
    if head.startswith(_UTF16_BOMS):
        raise DataError("UTF-16 text")
    return file.seek(len(codecs.BOM_UTF8) if head == codecs.BOM_UTF8 else 0)


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, errors: str, offset: int, report: Report) -> str:
    pending = decoder.getstate()[0]
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
                raise DataError(f"not UTF-8 at byte {where}") from error
            report.replaced += 1
            pieces.append(data[: error.start].decode("utf-8") + "\N{REPLACEMENT CHARACTER}")
            data = data[error.end :]


class _LetterCleaner:
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
        self._space_is_due = text.endswith(" ") or (text == "" and self._space_is_due)
        text = text.rstrip(" ").replace(" \n", "\n").replace("\n ", "\n")
        if text:
            self._line_is_empty = text.endswith("\n")
        return text


def _count_letters(block: str, report: Report) -> None:
    foreign = sum(character.isalpha() for character in block if character > "\x7f")
    report.foreign_letters += foreign
    report.letters += foreign + len(block) - len(re.sub("[A-Za-z]", "", block))


def count(text: str) -> tuple[int, int, int]:
    """Return lines, characters without line ends, and words."""
    return text.count("\n"), len(text) - text.count("\n"), len(words(text.replace("\n", " ")))


def words(line: str) -> list[str]:
    return [word for word in line.split(" ") if word]


def split(text: str, fractions: Mapping[str, float]) -> dict[str, str]:
    """Return the parts of a cleaned text by the names of the fractions."""
    total = len(text)
    tolerance = total * min(fractions.values()) / 10
    cuts, reached = [], 0.0
    for fraction in list(fractions.values())[:-1]:
        reached += fraction
        cuts.append(_nearest_cut(text, reached * total, tolerance))
    ends = [*cuts, total]
    if any(end <= start for start, end in zip([0, *cuts], ends, strict=True)):
        raise DataError("too few line ends and spaces")
    parts = {}
    for name, start, end in zip(fractions, [0, *cuts], ends, strict=True):
        part = text[start:end]
        part = part[:-1] + "\n" if part.endswith(" ") else part
        parts[name] = part if part.endswith("\n") or name != list(fractions)[-1] else part + "\n"
    return parts


def _nearest_cut(text: str, goal: float, tolerance: float) -> int:
    nearest = {}
    for mark in "\n ":
        found = [text.rfind(mark, 0, int(goal)), text.find(mark, int(goal))]
        cuts = [place + 1 for place in found if place >= 0]
        nearest[mark] = min(cuts, key=lambda cut: abs(cut - goal), default=0)
    return nearest["\n"] if abs(nearest["\n"] - goal) <= tolerance else nearest[" "]


def tokens(text: str, kind: str, line_separator: str) -> list[str]:
    """Return the tokens of a split."""
    text = text.removesuffix("\n")
    return list(text.replace("\n", line_separator)) if kind == "char" else words(text.replace("\n", " "))


def vocabulary(train: Iterable[str], min_freq: int, reserved: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the tokens of a vocabulary and their counts."""
    counter = Counter(train)
    found = ["<unk>", *reserved]
    # sorted() is stable and a Counter keeps the order of first appearance.
    by_frequency = sorted(counter.items(), key=lambda item: -item[1])
    special = set(found)
    found += [token for token, number in by_frequency if number >= min_freq and token not in special]
    kept = set(found)
    counts = [counter[token] for token in found]
    counts[0] += sum(number for token, number in by_frequency if token not in kept)
    return found, counts


def encode(stream: Sequence[str], vocab: Sequence[str]) -> list[int]:
    indices = {token: index for index, token in enumerate(vocab)}
    return [indices.get(token, 0) for token in stream]


def whole_text(splits: Sequence[str], kind: str, line_separator: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the tokens of all splits as one text by falling frequency, ties by first appearance, and their ids."""
    stream: list[str] = []
    for index, text in enumerate(splits):
        if index and kind == "char" and line_separator:
            stream.append(line_separator)
        stream += tokens(text, kind, line_separator)
    names = [token for token, _ in Counter(stream).most_common()]
    numbers = {token: number for number, token in enumerate(names, start=1)}
    return ["<unk>", *names], np.array([numbers[token] for token in stream], np.int64)
