"""How much memory there is: that of the machine, or of the container."""

from pathlib import Path

import psutil
import pytest

from seqlm.core import memory
from seqlm.core.errors import MachineError
from seqlm.core.memory import machine_memory, require_memory

TOTAL = psutil.virtual_memory().total


@pytest.mark.parametrize(("limit", "expected"), [("4000000\n", 4_000_000), ("max\n", TOTAL), (f"{TOTAL}0", TOTAL)])
def test_the_smaller_of_the_machine_and_its_container_counts(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_CGROUP_LIMIT", tmp_path / "memory.max")
    assert machine_memory() == TOTAL  # a system without such a file
    (tmp_path / "memory.max").write_text(limit)
    assert machine_memory() == expected
    require_memory(expected, "this")
    with pytest.raises(MachineError, match=r"^this needs about \d+ GB of memory, and this machine has \d+: use a"):
        require_memory(expected + 1, "this")
