"""How long things take, as it is said at a terminal."""

from collections.abc import Iterator

import pytest

from seqlm.core.progress import clocked


class Clock:
    """A clock that goes only when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("seqlm.core.progress.time", found)
    return found


def test_each_item_comes_with_its_own_seconds(clock: Clock) -> None:
    def items() -> Iterator[str]:
        for name, seconds in (("first", 2), ("second", 3)):
            clock.now += seconds
            yield name

    found = {}
    for name, seconds in clocked(items()):
        found[name] = seconds
        clock.now += 10  # what is done with an item is not its own time
    assert found == {"first": 2, "second": 3}
