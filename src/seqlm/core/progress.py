"""How long things take, for those who wait at a terminal. Times never go to a tracked file."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
Log = Callable[[str], None]
"""Prints a line."""


def clocked(items: Iterable[T]) -> Iterator[tuple[T, float]]:
    """Yield items, each with the seconds that it took to come."""
    begin = time.monotonic()
    for item in items:
        yield item, time.monotonic() - begin
        begin = time.monotonic()


@contextmanager
def timed(what: str, log: Log) -> Iterator[None]:
    """Say how long what stands inside took."""
    begin = time.monotonic()
    yield
    log(f"{what}: {time.monotonic() - begin:.1f} s")
