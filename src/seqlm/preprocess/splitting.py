"""Splitting of a cleaned text in order, in bounded memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from seqlm.core.errors import DataError
from seqlm.core.text import text_blocks


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
