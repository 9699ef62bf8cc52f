"""From a raw corpus to three cleaned splits: cleaning, and splitting in order, in bounded memory."""

import math
import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from seqlm.core.errors import DataError
from seqlm.core.files import read_json, temporary_folder
from seqlm.core.progress import quantity
from seqlm.core.text import TextSize, byte_blocks, count_text
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks


def split_text(source: Path, targets: Mapping[str, Path], fractions: Mapping[str, float]) -> None:
    """Split a cleaned text in order into a file for each of the ``fractions``, every line ended by ``\n``.

    ``source`` itself becomes the first part. The text is cut at the line ends nearest to the
    fractions of its bytes. If the nearest line end is further away than a tenth of the smallest
    split, the text is cut at the nearest space instead, which becomes a line end. Raises
    DataError if a split would be empty.
    """
    size = source.stat().st_size
    tolerance = size * min(fractions.values()) / 10
    goals = [reached * size for reached in accumulate(fractions.values())][:-1]
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        ends = [*(_nearest_cut(text, goal, tolerance) for goal in goals), size]
    if any(end <= start for start, end in pairwise([0, *ends])):
        raise DataError(
            f"has too few line ends and spaces to be split into {', '.join(fractions)}: break it into lines, "
            "for example at the ends of sentences"
        )
    first, *others = (targets[name] for name in fractions)
    for target, (start, end) in zip(others, pairwise(ends), strict=True):
        with target.open("wb") as part:
            part.writelines(byte_blocks(source, start=start, stop=end))
        _end_with_line_end(target)
    os.truncate(source, ends[0])
    _end_with_line_end(source)
    source.replace(first)


def _nearest_cut(text: mmap.mmap, goal: float, tolerance: float) -> int:
    """Return the byte after the line end nearest to a byte, or else after the nearest space."""

    def nearest(mark: bytes, reach: int) -> tuple[float, int]:
        """Return how far from the goal the nearest cut is, and its byte."""
        begin, pivot, end = int(max(goal - reach, 0)), int(goal), int(goal + reach)
        found = text.rfind(mark, begin, pivot), text.find(mark, pivot, end)
        return min(((abs(place + 1 - goal), place + 1) for place in found if place >= 0), default=(math.inf, 0))

    distance, cut = nearest(b"\n", math.ceil(tolerance) + 1)
    return cut if distance <= tolerance else nearest(b" ", len(text))[1]


def _end_with_line_end(path: Path) -> None:
    """Make the last character of a file a line end, which replaces a space or follows anything else."""
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1 if last in b" \n" else 0, os.SEEK_END)
        file.write(b"\n")


_START, _END = (re.compile(rb"\*\*\* ?%s OF TH(?:E|IS) PROJECT GUTENBERG EBOOK" % mark) for mark in (b"START", b"END"))
_SEARCHED_BYTES = 1 << 20
"""How much of a file's beginning and of its end is searched for Project Gutenberg's markers."""


def boilerplate_share(path: Path) -> float:
    """Return the share of a file that is before the start marker and after the end marker; 0 if it has neither."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SEARCHED_BYTES)
        file.seek(max(size - _SEARCHED_BYTES, 0))
        tail = file.read()
    start, ends = _START.search(head), list(_END.finditer(tail))
    before = start.start() if start else 0
    after = len(tail) - ends[-1].start() if ends else 0
    return (before + after) / max(size, 1)


MIN_CHARACTERS = 500
"""Characters of the shortest text that is accepted, so that val and test, a tenth each, have some words to score."""
_FOREIGN_SHARE_WORTH_A_WARNING = 0.01


@dataclass(frozen=True)
class Preprocessed:
    """The size of each split of a corpus, and what a user should know about the text."""

    sizes: dict[str, TextSize]
    decoding: DecodingReport
    warnings: list[str]


def find_raw_text(path: Path, record: Path) -> RawText:
    """Return the text that the download stage wrote, with the name in its ``record`` if there is one."""
    if not path.exists():
        raise DataError(f"{path}: no such file: run the stage that writes it")
    return RawText(path, str(read_json(record)["file"]) if record.exists() else str(path))


def clean_and_split(
    raw: RawText, folder: Path, normalise: str, errors: str, fractions: Mapping[str, float]
) -> Preprocessed:
    """Clean ``raw`` and write ``NAME.txt`` to ``folder`` for each of the ``fractions``, in order.

    No split is replaced before all are complete. Raises DataError for text that cannot be
    decoded, has no letters (under ``normalise="letters"``) or is too short.
    """
    with temporary_folder(folder) as work:
        cleaned, parts = work / "cleaned.txt", {split: work / f"{split}.txt" for split in fractions}
        decoding = DecodingReport()
        with cleaned.open("wb") as target:
            target.writelines(clean_blocks(raw, normalise, errors, decoding))
        try:
            whole = count_text(cleaned)
            require_enough(whole, normalise, MIN_CHARACTERS)
            split_text(cleaned, parts, fractions)
        except DataError as error:
            raise DataError(f"{raw.name}: {error}") from error
        sizes = {split: count_text(path) for split, path in parts.items()}
        for split, size in sizes.items():
            if size.words < 2:
                has = quantity(size.words, "word")
                raise DataError(f"{raw.name}: the {split} split has {has}, and needs two: change preprocess.split")
        for split, path in parts.items():
            path.replace(folder / f"{split}.txt")
    warnings = decoding_warnings(decoding, normalise)
    if share := boilerplate_share(raw.path):
        warnings.append(
            f"{share:.1%} of the text is Project Gutenberg's header and licence, before its line '*** START OF' and "
            "after '*** END OF': remove them, or models learn from one and are scored on the other"
        )
    return Preprocessed(sizes, decoding, warnings)


def decoding_warnings(decoding: DecodingReport, normalise: str) -> list[str]:
    """Return what a user should know about the decoding and cleaning of a text."""
    found = []
    if decoding.replaced:
        was = "was" if decoding.replaced == 1 else "were"
        found.append(f"{quantity(decoding.replaced, 'byte sequence')} {was} not UTF-8 and {was} replaced")
    share = decoding.foreign_letters / max(1, decoding.letters)
    if normalise == "letters" and share >= _FOREIGN_SHARE_WORTH_A_WARNING:
        found.append(
            f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none to keep them"
        )
    return found


def require_enough(size: TextSize, normalise: str, min_characters: int) -> None:
    """Raise DataError if a cleaned text has no words or is too short."""
    other_scripts = ", or set preprocess.normalise: none for other scripts" if normalise == "letters" else ""
    if size.words == 0:
        what = "has no letters A-Z" if normalise == "letters" else "has nothing but white space"
        raise DataError(f"{what}: use another text{other_scripts}")
    if size.characters < min_characters:
        raise DataError(
            f"has only {quantity(size.characters, 'character')} after cleaning, too few to train on and to score: "
            f"use a text of at least {min_characters}{other_scripts}"
        )
