"""Tables of n-grams against a Counter and plain NumPy, and counting in chunks, on threads and on a real cluster."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqlm.core.errors import DataError, MachineError
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import Chunking, NgramCounter, count_ngrams
from seqlm.ngrams.counts.sorted_counts import merge, run_lengths
from seqlm.ngrams.statistics import most_frequent

SMALL_MEMORY = 1 << 20
"""A megabyte: a few thousand tokens per chunk."""
TEXT = np.minimum(np.random.default_rng(0).zipf(1.3, 60_000), 999).astype(np.uint16)


def assert_equal(one: NgramCounts, other: NgramCounts) -> None:
    assert one.starts == other.starts
    for ours, theirs in zip(one.tables, other.tables, strict=True):
        assert np.array_equal(ours.keys, theirs.keys)
        assert np.array_equal(ours.counts, theirs.counts)


# 8 tokens of 10 bits, or 5 of 16 bits, are more than the 63 bits of a packed key. In memory, and if there are only 300
# different ones, pairs of tokens are packed. Those of 21 bits alone divide the keys into ranges.
@pytest.mark.parametrize(
    ("max_order", "vocab_size"),
    [(1, 1000), (2, 1000), (3, 1000), (8, 1000), (8, 300), (7, 300), (6, 2**16), (3, 2**21)],
)
def test_chunks_count_as_all_at_once(max_order: int, vocab_size: int, tmp_path: Path) -> None:
    text = TEXT % min(vocab_size, 1000)
    chunked = NgramCounter(text, vocab_size, max_order, Chunking(SMALL_MEMORY, tmp_path)).count()
    assert_equal(chunked, count_ngrams(text, vocab_size, max_order))
    # The finished tables are in the folder, and none of a text that fits into memory.
    assert {path.stem for path in tmp_path.glob("*.*")} == {f"order{order}" for order in range(2, max_order + 1)}
    (tmp_path / "none").mkdir()
    NgramCounter(text, vocab_size, max_order, Chunking(1 << 30, tmp_path / "none")).count()
    assert not list((tmp_path / "none").iterdir())


# The whole has 999 tokens, its first part 900, packed in the same way or in pairs, or 400, packed in fewer bits.
@pytest.mark.parametrize(("largest", "max_order"), [(900, 3), (400, 3), (900, 1), (900, 7)])
@pytest.mark.parametrize("memory", [SMALL_MEMORY, 1 << 30])
def test_counts_of_a_first_part_change_no_count(largest: int, max_order: int, memory: int, tmp_path: Path) -> None:
    text = np.concatenate([np.minimum(TEXT[:40_000], largest), TEXT[40_000:]])
    (tmp_path / "first").mkdir()
    first = NgramCounter(text[:40_000], largest + 1, max_order, Chunking(memory, tmp_path / "first"))
    first.count()
    whole = NgramCounter(text, 1000, max_order, Chunking(memory, tmp_path), first.packed)
    assert_equal(whole.count(), count_ngrams(text, 1000, max_order))


@given(st.lists(st.lists(st.integers(0, 30), max_size=40), min_size=1, max_size=6), st.integers(1, 9))
def test_merged_runs_have_every_key_once_with_its_counts_added(chunks: list[list[int]], buffer_rows: int) -> None:
    parts = list(merge([run_lengths(np.array(chunk, np.int64)) for chunk in chunks], buffer_rows))
    expected = run_lengths(np.array(list(chain.from_iterable(chunks)), np.int64))
    assert np.concatenate([keys for keys, _ in parts] or [[]]).tolist() == expected.keys.tolist()
    assert np.concatenate([counts for _, counts in parts] or [[]]).tolist() == expected.counts.tolist()


def test_large_runs_are_merged_by_compiled_loops_to_the_same_result() -> None:
    rng = np.random.default_rng(0)
    chunks = [rng.integers(0, 10**7, 2_500_000) for _ in range(3)]
    all_sorted = [run_lengths(chunk.copy()) for chunk in chunks]
    assert sum(map(len, all_sorted)) > 5_000_000
    (keys, counts), *_ = merge(all_sorted, 10**7)
    expected = run_lengths(np.concatenate(chunks))
    assert (keys == expected.keys).all()
    assert (counts == expected.counts).all()


@dataclass
class Cluster:
    """A Dask scheduler and two workers, each a process."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    from distributed import Client

    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = ["dask_worker", *common, "--nthreads", "1", "--no-nanny", "--local-directory"]
    commands = [["dask_scheduler", "--port", "0", *common], *([*worker, str(tmp_path / f"w{n}")] for n in (1, 2))]
    with ExitStack() as stack:
        processes = []
        for name, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.{name}", *options]
            processes.append(stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL)))
            stack.callback(processes[-1].kill)
        with Client(scheduler_file=str(file), timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            address = client.scheduler.address
        yield Cluster(address, processes[0], processes[1:])


def test_a_cluster_of_two_processes_counts_the_same(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "whole").mkdir()
    np.save(tmp_path / "text.npy", TEXT)
    text = np.load(tmp_path / "text.npy", mmap_mode="r")  # the workers read a file, and a copy of its first part
    first = NgramCounter(text[:40_000], 1000, 7, Chunking(SMALL_MEMORY, tmp_path / "first", cluster.address))
    assert_equal(first.count(), count_ngrams(TEXT[:40_000], 1000, 7))
    whole = NgramCounter(text, 1000, 7, Chunking(SMALL_MEMORY, tmp_path / "whole", cluster.address), first.packed)
    assert_equal(whole.count(), count_ngrams(TEXT, 1000, 7))
    assert [path.name for path in tmp_path.rglob("tasks-*/ids")] == ["ids"]


LONG_TEXT = np.minimum(np.random.default_rng(0).zipf(1.3, 2_000_000), 999).astype(np.uint16)
"""More than 300 chunks of a megabyte's worth of memory."""


def kill_when_files_appear(process: subprocess.Popen[bytes], folder: Path, pattern: str, number: int) -> Thread:
    """Start a thread that kills a process once there are so many files of a job."""

    def watch() -> None:
        while len(list(folder.glob(f"tasks-*/{pattern}.counts"))) < number:
            time.sleep(0.002)
        process.kill()

    thread = Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "number"), [("run3-*", 20), ("packed3-*", 1)], ids=["counting", "merging"])
def test_a_lost_worker_changes_nothing(pattern: str, number: int, cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "counts"
    folder.mkdir()
    ids = tmp_path / "ids.npy"
    np.save(ids, LONG_TEXT)
    killer = kill_when_files_appear(cluster.workers[0], folder, pattern, number)
    counter = NgramCounter(np.load(ids, mmap_mode="r"), 1000, 3, Chunking(SMALL_MEMORY, folder, cluster.address))
    counts = counter.count()
    assert not killer.is_alive()
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert_equal(counts, count_ngrams(LONG_TEXT, 1000, 3))


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error_of_one_line(cluster: Cluster, tmp_path: Path) -> None:
    kill_when_files_appear(cluster.scheduler, tmp_path, "run3-*", 20)
    with pytest.raises(MachineError, match="the Dask scheduler has ended: start it, and run this again"):
        NgramCounter(LONG_TEXT, 1000, 3, Chunking(SMALL_MEMORY, tmp_path, cluster.address)).count()


@pytest.mark.slow
def test_workers_without_this_version_and_no_workers_are_errors_of_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunking = Chunking(SMALL_MEMORY, tmp_path, cluster.address)
    with monkeypatch.context() as patch:
        patch.setattr("seqlm.ngrams.counts.workers._TASKS", "seqlm.ngrams.newer")
        with pytest.raises(
            MachineError, match=r"No module named 'seqlm\.ngrams\.newer', says a worker .*: install the same"
        ):
            NgramCounter(TEXT, 1000, 3, chunking).count()
    monkeypatch.setattr("seqlm.ngrams.counts.workers._CONNECT_S", 3)
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    with pytest.raises(MachineError, match="has no worker: start one"):
        NgramCounter(TEXT, 1000, 3, chunking).count()


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.ngrams.counts.workers._CONNECT_S", 1)
    with pytest.raises(MachineError, match=r"the Dask scheduler at tcp://127.0.0.1:1 does not answer"):
        NgramCounter(TEXT, 1000, 3, Chunking(SMALL_MEMORY, tmp_path, "tcp://127.0.0.1:1")).count()


WIDE = 1 << 16
"""A vocabulary of which only three tokens fit into one packed key."""
texts = st.lists(st.integers(0, 4), min_size=3, max_size=60)


def counted(counts: NgramCounts, order: int) -> dict[tuple[int, ...], int]:
    table = counts.table(order)
    rows = np.flatnonzero(table.counts)
    return dict(zip(map(tuple, table.tokens_of(rows).tolist()), table.counts[rows].tolist(), strict=True))


@given(texts, st.integers(1, 5), st.sampled_from([5, WIDE]))
def test_counts_equal_those_of_a_counter(text: list[int], max_order: int, vocab_size: int) -> None:
    assume(len(text) >= max_order)
    ids = np.array(text)
    counts = count_ngrams(ids, vocab_size, max_order)
    for n in range(1, max_order + 1):
        expected = Counter(tuple(text[start : start + n]) for start in range(len(text) - n + 1))
        assert counted(counts, n) == expected
        assert (counts.table(n).keys[1:] > counts.table(n).keys[:-1]).all()
        assert counts.table(n).tokens_of(np.array(counts.starts[n - 1 : n])).tolist() == [text[:n]]
        # Ties by first appearance: that is the order of a Counter.
        ranked = counts.table(n).tokens_of(most_frequent(ids, counts, n, 3)).tolist()
        assert ranked == [list(ngram) for ngram, _ in expected.most_common(3)]


@pytest.mark.parametrize(("num_tokens", "vocab_size"), [(50, 5), (1_300_000, 3000)], ids=["small", "large"])
def test_rows_lead_to_prefixes_suffixes_and_totals(num_tokens: int, vocab_size: int) -> None:
    """The large tables have more than a million rows: they are worked on in blocks, on threads, in compiled loops."""
    text = np.random.default_rng(0).integers(0, vocab_size, num_tokens)
    counts = count_ngrams(text, vocab_size, 3)
    for n in (2, 3):
        table, below = counts.table(n), counts.table(n - 1)
        ngrams = table.tokens_of(np.arange(len(table)))
        prefixes, lasts = table.split()
        assert (below.tokens_of(prefixes) == ngrams[:, :-1]).all()
        assert (lasts == ngrams[:, -1]).all()
        assert (below.tokens_of(table.suffixes.astype(np.int64)) == ngrams[:, 1:]).all()
        assert (table.context_totals == np.bincount(prefixes, table.counts, len(below))).all()
        shuffled = np.random.default_rng(1).permutation(len(table))
        assert (table.find(prefixes[shuffled], lasts[shuffled]) == shuffled).all()
        tokens, rows = table.continuations(int(prefixes[-1]))
        assert tokens.tolist() == lasts[prefixes == prefixes[-1]].tolist()
        assert rows.stop == len(table)


def test_unseen_ngrams_have_no_row() -> None:
    counts = count_ngrams(np.array([0, 1, 2, 0, 1]), 4, 3)
    _, bigrams, trigrams = counts.rows_of(np.array([0, 1, 3, 0, 1, 2]), 3)
    # 01 and 12 were seen, 13, 30 were not; of the trigrams only 012 was.
    assert (bigrams >= 0).tolist() == [True, False, False, True, True]
    assert (trigrams >= 0).tolist() == [False, False, False, True]
    # The contexts of 3, 301: none. Those of 1, 01, and of 3 at the end: that one only as a token.
    assert [n for n, row in counts.context_rows(np.array([0, 1]), 3) if row >= 0] == [2, 3]
    assert [(n, row >= 0) for n, row in counts.context_rows(np.array([0, 3]), 3)] == [(2, True), (3, False)]

    # A text that is shorter than the order is an error.
    with pytest.raises(DataError, match="2 tokens are too few for n-grams of order 3"):
        count_ngrams(np.array([1, 2]), 3, 3)
