"""What a stage says to the person at the terminal. Times are never written to a tracked file."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Log = Callable[[str], None]
"""Prints a line."""


def timed(items: Iterable[T]) -> Iterator[tuple[T, float]]:
    """Yield items, each with the seconds that it took to produce."""
    begin = time.monotonic()
    for item in items:
        yield item, time.monotonic() - begin
        begin = time.monotonic()


def shown(path: Path) -> str:
    """Return a path as text, with escapes for bytes of a name that are not UTF-8."""
    return str(path).encode(errors="backslashreplace").decode()


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, as in "1 character" or "1,200 characters"."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"
