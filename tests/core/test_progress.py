"""How long things take, as it is said at a terminal."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from seqlm.core.progress import clocked


def test_each_item_comes_with_its_own_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("seqlm.core.progress.time", SimpleNamespace(monotonic=lambda: now))

    def items() -> Iterator[str]:
        nonlocal now
        for name, seconds in (("first", 2), ("second", 3)):
            now += seconds
            yield name

    found = {}
    for name, seconds in clocked(items()):
        found[name] = seconds
        now += 10  # what is done with an item is not its own time
    assert found == {"first": 2, "second": 3}
