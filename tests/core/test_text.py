"""Sizes of a text and of memory, evenly spaced windows, numbers in sentences, and what measures a model."""

import math
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core import memory
from seqlm.core.errors import MachineError
from seqlm.core.memory import machine_memory, require_memory
from seqlm.core.metrics import bits_per_character, perplexity
from seqlm.core.progress import count_noun
from seqlm.core.text import window_starts


@given(st.integers(1, 100), st.integers(0, 1000), st.integers(0, 10**12))
def test_windows_begin_apart_and_end_inside(num_windows: int, length: int, more: int) -> None:
    starts = window_starts(num_windows, length, length + more).tolist()
    assert len(starts) == len(set(starts)) == min(num_windows, more + 1)
    assert starts[0] == 0
    assert len(starts) == 1 or starts[-1] == more
    gaps = {after - before for before, after in pairwise(starts)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_nouns_agree_with_their_numbers() -> None:
    assert [count_noun(number, "line") for number in (0, 1, 2, 1200)] == ["0 lines", "1 line", "2 lines", "1,200 lines"]


def test_perplexity_is_summed_first_and_exponentiated_last() -> None:
    # Two tokens with p = 1/2 and 1/8: exp((ln 2 + ln 8) / 2) = 4, not the mean of 2 and 8.
    assert perplexity(math.log(2) + math.log(8), 2) == pytest.approx(4)
    assert bits_per_character(math.log(2) + math.log(8), 8) == pytest.approx(0.5)
    assert math.isinf(perplexity(1e6, 1))


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
