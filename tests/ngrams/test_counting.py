"""Counting in chunks: the same counts as all at once, on threads and on a real cluster."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import NetworkError
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import Chunking, NgramCounter, count_ngrams
from seqlm.ngrams.counts.sorted_runs import MemoryRun, Part, merge, run_lengths, write_run

SMALL_MEMORY = 1 << 20
"""A megabyte: a few thousand tokens per chunk."""
TEXT = np.minimum(np.random.default_rng(0).zipf(1.3, 60_000), 999).astype(np.uint16)


def assert_equal(one: NgramCounts, other: NgramCounts) -> None:
    assert one.starts == other.starts
    for ours, theirs in zip(one.tables, other.tables, strict=True):
        assert np.array_equal(ours.keys, theirs.keys)
        assert np.array_equal(ours.counts, theirs.counts)


# 8 tokens of 10 bits, or 5 of 16 bits, are more than the 63 bits of a packed key. In memory, 4 pairs of tokens fit.
@pytest.mark.parametrize(("max_order", "vocab_size"), [(1, 1000), (2, 1000), (3, 1000), (8, 1000), (6, 2**16)])
def test_chunks_count_as_all_at_once(max_order: int, vocab_size: int, tmp_path: Path) -> None:
    chunked = count_ngrams(TEXT, vocab_size, max_order, Chunking(SMALL_MEMORY, tmp_path))
    assert_equal(chunked, count_ngrams(TEXT, vocab_size, max_order))
    # Only the finished tables are left.
    assert {path.stem for path in tmp_path.iterdir()} == {f"order{order}" for order in range(2, max_order + 1)}


@pytest.mark.parametrize("max_order", [7, 8])
def test_packed_pairs_count_as_a_counter_does(max_order: int, tmp_path: Path) -> None:
    num_tokens = len(TEXT) - max_order + 1
    expected = Counter(zip(*(TEXT[start : start + num_tokens].tolist() for start in range(max_order)), strict=True))
    chunked = Chunking(1 << 23, tmp_path)
    for counts in (count_ngrams(TEXT, 1000, max_order), count_ngrams(TEXT, 1000, max_order, chunked)):
        table = counts.table(max_order)
        found = zip(map(tuple, table.tokens_of(np.arange(len(table))).tolist()), table.counts.tolist(), strict=True)
        assert list(found) == sorted(expected.items())
    assert list(tmp_path.iterdir())


# The whole has 999 tokens, its first part has 900, 400 or, in pairs, 999: the same packing, fewer bits, and pairs.
@pytest.mark.parametrize(("largest", "max_order"), [(900, 3), (400, 3), (900, 1), (900, 7)])
@pytest.mark.parametrize("memory", [SMALL_MEMORY, 1 << 30])
def test_the_first_part_of_a_text_need_not_be_counted_again(
    largest: int, max_order: int, memory: int, tmp_path: Path
) -> None:
    text = np.concatenate([np.minimum(TEXT[:40_000], largest), TEXT[40_000:]])
    (tmp_path / "first").mkdir()
    first = NgramCounter(text[:40_000], largest + 1, max_order, Chunking(memory, tmp_path / "first"))
    first.count()
    whole = NgramCounter(text, 1000, max_order, Chunking(memory, tmp_path), first.packed)
    assert_equal(whole.count(), count_ngrams(text, 1000, max_order))


def test_a_text_that_fits_is_counted_in_memory(tmp_path: Path) -> None:
    count_ngrams(TEXT, 1000, 3, Chunking(1 << 30, tmp_path))
    assert not list(tmp_path.iterdir())


def assert_union(parts: list[Part], keys: list[int]) -> None:
    expected = run_lengths(np.array(keys, np.int64))
    assert np.concatenate([keys for keys, _ in parts] or [[]]).tolist() == expected.keys.tolist()
    assert np.concatenate([counts for _, counts in parts] or [[]]).tolist() == expected.counts.tolist()


@given(st.lists(st.lists(st.integers(0, 30), max_size=40), min_size=1, max_size=6), st.integers(1, 9))
def test_merged_runs_have_every_key_once_with_its_counts_added(chunks: list[list[int]], buffer_rows: int) -> None:
    runs = [run_lengths(np.array(chunk, np.int64)) for chunk in chunks]
    assert_union(list(merge(runs, buffer_rows)), list(chain.from_iterable(chunks)))


def test_large_runs_are_merged_by_compiled_loops_to_the_same_result() -> None:
    rng = np.random.default_rng(0)
    chunks = [rng.integers(0, 10**7, 2_500_000) for _ in range(3)]
    runs = [run_lengths(chunk.copy()) for chunk in chunks]
    assert sum(map(len, runs)) > 5_000_000
    (keys, counts), *_ = merge(runs, 10**7)
    expected = run_lengths(np.concatenate(chunks))
    assert (keys == expected.keys).all()
    assert (counts == expected.counts).all()


def test_a_run_in_a_file_reads_as_one_in_memory(tmp_path: Path) -> None:
    run = MemoryRun(np.array([1, 4, 9]), np.array([2, 1, 5]))
    stored = write_run(tmp_path / "run", [run.read(0, 2), run.read(2, 9)])
    for start, stop in [(0, 3), (1, 2), (2, 9), (3, 9)]:
        for ours, theirs in zip(stored.read(start, stop), run.read(start, stop), strict=True):
            assert ours.tolist() == theirs.tolist()
    assert [part.tolist() for part in stored.mapped()] == [[1, 4, 9], [2, 1, 5]]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a Dask scheduler with two worker processes."""
    from distributed import Client

    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = ["dask_worker", *common, "--nthreads", "1", "--no-nanny", "--local-directory"]
    commands = [["dask_scheduler", "--port", "0", *common], *([*worker, str(tmp_path / f"w{n}")] for n in (1, 2))]
    processes = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.{name}", *options], stderr=subprocess.DEVNULL)
        for name, *options in commands
    ]
    try:
        with Client(scheduler_file=str(file), timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            address = client.scheduler.address
        yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_of_two_processes_counts_the_same(scheduler: str, tmp_path: Path) -> None:
    folder = tmp_path / "counts"
    folder.mkdir()
    assert_equal(count_ngrams(TEXT, 1000, 3, Chunking(SMALL_MEMORY, folder, scheduler)), count_ngrams(TEXT, 1000, 3))


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.ngrams.counts.counting._CONNECT_S", 1)
    with pytest.raises(NetworkError, match=r"the Dask scheduler at tcp://127.0.0.1:1 does not answer"):
        count_ngrams(TEXT, 1000, 3, Chunking(SMALL_MEMORY, tmp_path, "tcp://127.0.0.1:1"))
