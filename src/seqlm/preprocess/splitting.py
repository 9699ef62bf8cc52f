"""Splitting of a cleaned text in order, in bounded memory."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES, byte_blocks, starts_of_characters


@dataclass(frozen=True)
class _Place:
    """A place in a text: the characters and the bytes before it."""

    characters: int
    bytes: int


def split_text(
    source: Path,
    targets: Mapping[str, Path],
    fractions: Mapping[str, float],
    total: int,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Part a cleaned text in order into a file for each of the ``fractions``, every line ended by ``\n``.

    ``source`` itself becomes the first part; ``total`` is how many characters it has, line
    ends included. The cuts lie at the line ends nearest the fractions of them. Where the
    nearest line end is further off than a tenth of the smallest split, the text has too few
    lines, and the cut lies at the nearest space, which becomes a line end. Raises DataError
    where a split would be empty.
    """
    tolerance = total * min(fractions.values()) / 10
    goals, reached = [], 0.0
    for fraction in list(fractions.values())[:-1]:
        reached += fraction
        goals.append(reached * total)
    cuts = _nearest_cuts(source, goals, tolerance, block_bytes)
    ends = [*(cut.characters for cut in cuts), total]
    if any(end <= start for start, end in zip([0, *ends], ends, strict=False)):
        raise DataError(
            f"{total} characters in too few lines and words to split into {', '.join(fractions)}: bring a longer text"
        )
    first, *others = (targets[name] for name in fractions)
    _end_with_line_end(source)
    borders = [*(cut.bytes for cut in cuts), source.stat().st_size]
    for target, (start, end) in zip(others, pairwise(borders), strict=True):
        _copy_part(source, target, start, end, block_bytes)
        _end_with_line_end(target)
    os.truncate(source, borders[0])
    _end_with_line_end(source)
    source.replace(first)


def _nearest_cuts(source: Path, goals: list[float], tolerance: float, block_bytes: int) -> list[_Place]:
    """Return for each goal the place just behind the nearest line end, or else the nearest space."""
    nearest: dict[tuple[int, bytes], _Place] = {}
    start = _Place(0, 0)
    for block in byte_blocks(source, block_bytes):
        is_start = starts_of_characters(block)
        size = int(np.count_nonzero(is_start))
        for index, goal in enumerate(goals):
            pivot = _byte_of(int(goal) - start.characters, is_start, size)
            for mark in (b"\n", b" "):
                for cut in _cuts_beside(block, mark, pivot):
                    place = _Place(start.characters + int(np.count_nonzero(is_start[:cut])), start.bytes + cut)
                    old = nearest.get((index, mark))
                    if old is None or abs(place.characters - goal) < abs(old.characters - goal):
                        nearest[index, mark] = place
        start = _Place(start.characters + size, start.bytes + len(block))
    nowhere = _Place(0, 0)
    cuts = []
    for index, goal in enumerate(goals):
        place = nearest.get((index, b"\n"), nowhere)
        cuts.append(place if abs(place.characters - goal) <= tolerance else nearest.get((index, b" "), nowhere))
    return cuts


def _byte_of(character: int, is_start: NDArray[np.bool_], size: int) -> int:
    """Return the byte of a block where its character of this number begins; its borders for numbers outside."""
    if character <= 0:
        return 0
    return len(is_start) if character >= size else int(np.flatnonzero(is_start)[character])


def _cuts_beside(block: bytes, mark: bytes, pivot: int) -> Iterator[int]:
    """Yield where the text may be cut behind the last mark before byte ``pivot`` and the first one from there on."""
    for found in (block.rfind(mark, 0, pivot), block.find(mark, pivot)):
        if found >= 0:
            yield found + 1


def _copy_part(source: Path, target: Path, start: int, end: int, block_bytes: int) -> None:
    """Write the bytes of ``source`` from one offset to another to ``target``."""
    with source.open("rb") as file, target.open("wb") as copy:
        file.seek(start)
        while piece := file.read(min(block_bytes, end - file.tell())):
            copy.write(piece)


def _end_with_line_end(path: Path) -> None:
    """Make the last character of a file a line end: in the place of a space, or behind whatever else stands there."""
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1 if last in b" \n" else 0, os.SEEK_END)
        file.write(b"\n")
