"""Splitting of a cleaned text in order, in bounded memory."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.text import BLOCK_BYTES, byte_blocks, starts_of_characters


@dataclass(frozen=True)
class _Position:
    """A position in a text: the number of characters and bytes before it."""

    characters: int
    bytes: int


def split_text(
    source: Path,
    targets: Mapping[str, Path],
    fractions: Mapping[str, float],
    total: int,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Split a cleaned text in order into a file for each of the ``fractions``, every line ended by ``\n``.

    ``source`` itself becomes the first part; ``total`` is its number of characters with line
    ends. The text is cut at the line ends nearest to the fractions. If the nearest line end is
    further away than a tenth of the smallest split, the text is cut at the nearest space
    instead, which becomes a line end. Raises DataError if a split would be empty.
    """
    tolerance = total * min(fractions.values()) / 10
    goals = [reached * total for reached in accumulate(fractions.values())][:-1]
    cuts = _nearest_cuts(source, goals, tolerance, block_bytes)
    ends = [*(cut.characters for cut in cuts), total]
    if any(end <= start for start, end in pairwise([0, *ends])):
        raise DataError(
            f"has too few line ends and spaces to be split into {', '.join(fractions)}: break it into lines, "
            "for example at the ends of sentences"
        )
    first, *others = (targets[name] for name in fractions)
    _end_with_line_end(source)
    offsets = [*(cut.bytes for cut in cuts), source.stat().st_size]
    for target, (start, end) in zip(others, pairwise(offsets), strict=True):
        _copy_part(source, target, start, end, block_bytes)
        _end_with_line_end(target)
    os.truncate(source, offsets[0])
    _end_with_line_end(source)
    source.replace(first)


def _nearest_cuts(source: Path, goals: list[float], tolerance: float, block_bytes: int) -> list[_Position]:
    """Return for each goal the position after the nearest line end, or else after the nearest space."""
    nearest: dict[tuple[float, bytes], _Position] = {}
    start = _Position(0, 0)
    for block in byte_blocks(source, block_bytes):
        is_start = starts_of_characters(block)
        size = int(np.count_nonzero(is_start))
        for goal in goals:
            pivot = _byte_of(int(goal) - start.characters, is_start, size)
            for mark in (b"\n", b" "):
                for cut in _cuts_beside(block, mark, pivot):
                    found = _Position(start.characters + int(np.count_nonzero(is_start[:cut])), start.bytes + cut)
                    nearest[goal, mark] = min(nearest.get((goal, mark), found), found, key=_distance_to(goal))
        start = _Position(start.characters + size, start.bytes + len(block))
    nowhere = _Position(0, 0)
    at_lines = [nearest.get((goal, b"\n"), nowhere) for goal in goals]
    return [
        cut if _distance_to(goal)(cut) <= tolerance else nearest.get((goal, b" "), nowhere)
        for goal, cut in zip(goals, at_lines, strict=True)
    ]


def _distance_to(goal: float) -> Callable[[_Position], float]:
    return lambda position: abs(position.characters - goal)


def _byte_of(character: int, is_start: NDArray[np.bool_], size: int) -> int:
    """Return the byte at which a character of a block begins, or an end of the block if it is outside."""
    if character <= 0:
        return 0
    return len(is_start) if character >= size else int(np.flatnonzero(is_start)[character])


def _cuts_beside(block: bytes, mark: bytes, pivot: int) -> Iterator[int]:
    """Yield the positions after the last mark before byte ``pivot`` and after the first one from there on."""
    for found in (block.rfind(mark, 0, pivot), block.find(mark, pivot)):
        if found >= 0:
            yield found + 1


def _copy_part(source: Path, target: Path, start: int, end: int, block_bytes: int) -> None:
    """Write the bytes of ``source`` from one offset to another to ``target``."""
    with source.open("rb") as file, target.open("wb") as copy:
        file.seek(start)
        while block := file.read(min(block_bytes, end - file.tell())):
            copy.write(block)


def _end_with_line_end(path: Path) -> None:
    """Make the last character of a file a line end, which replaces a space or follows anything else."""
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1 if last in b" \n" else 0, os.SEEK_END)
        file.write(b"\n")
