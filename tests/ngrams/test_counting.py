"""Tables of n-grams against a Counter and plain NumPy, and the same tables from memory, DuckDB and Spark."""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from seqlm.core.errors import DataError, MachineError
from seqlm.ngrams.counts import counting
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts
from seqlm.ngrams.counts.counting import DuckDB, Spark, bytes_needed, choose_engine, count_ngrams
from seqlm.pipeline.ngrams.statistics import most_frequent

TEXT = np.minimum(np.random.default_rng(0).zipf(1.3, 60_000), 999).astype(np.uint16)
MEMORY = 1 << 29


def assert_equal(one: NgramCounts, other: NgramCounts) -> None:
    assert one.starts == other.starts
    for ours, theirs in zip(one.tables, other.tables, strict=True):
        assert np.array_equal(ours.keys, theirs.keys)
        assert np.array_equal(ours.counts, theirs.counts)


WIDE = 1 << 16
"""A vocabulary of which only three tokens fit into one packed key."""
texts = st.lists(st.integers(0, 4), min_size=3, max_size=60)


@settings(deadline=None)
@given(texts, st.integers(1, 5), st.sampled_from([5, WIDE]), st.sampled_from([1, 7, 1 << 20]))
def test_duckdb_gives_the_tables_of_memory(text: list[int], max_order: int, vocab_size: int, block: int) -> None:
    assume(len(text) >= max_order)
    ids = np.array(text, np.uint16)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "IDS_AT_ONCE", block)
        patch.setattr(counting, "BLOCK_ROWS", block)
        found = count_ngrams(ids, vocab_size, max_order, DuckDB(MEMORY, Path(folder)))
        assert_equal(found, count_ngrams(ids, vocab_size, max_order))


def test_what_needs_more_than_the_setting_is_counted_by_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "IDS_AT_ONCE", 10_000)
    counts = count_ngrams(TEXT, 1000, 3)
    # Each token takes 17 bytes and each distinct n-gram 32; the sample has more of these for its length.
    needed, fewest = (bytes_needed(TEXT, 1000, 3), 17 * len(TEXT) + 32 * sum(map(len, counts.tables[1:])))
    assert fewest < needed < 2 * fewest
    assert choose_engine(TEXT, 1000, 3, needed, tmp_path) is None
    assert choose_engine(TEXT, 1000, 3, needed - 1, tmp_path) == DuckDB(needed - 1, tmp_path)
    monkeypatch.setattr(counting, "machine_memory", lambda: 2 * needed)
    assert choose_engine(TEXT, 1000, 3, None, tmp_path) is None
    monkeypatch.setattr(counting, "machine_memory", lambda: 2 * needed - 2)
    assert choose_engine(TEXT, 1000, 3, None, tmp_path) == DuckDB(needed - 1, tmp_path)
    assert choose_engine(TEXT, 1000, 3, None, tmp_path, "local").address == "local"  # type: ignore[union-attr]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> str:
    """Spark's own small cluster: two workers, each a process."""
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return "local-cluster[2,1,1024]"


COUNT = """
import sys
from pathlib import Path
import numpy as np
from seqlm.ngrams.counts.counting import Spark, count_ngrams
folder, address, vocab_size, max_order = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
counts = count_ngrams(np.load(folder / "text.npy"), vocab_size, max_order, Spark(1 << 30, folder, address))
for order, table in enumerate(counts.tables, start=1):
    np.save(folder / f"found{order}.npy", np.stack([table.keys, table.counts]))
"""


def assert_spark_counts(folder: Path, address: str, ids: Ids, vocab_size: int, max_order: int) -> None:
    """Count in a process of its own, which ends with its cluster."""
    np.save(folder / "text.npy", ids)
    command = [sys.executable, "-c", COUNT, str(folder), address, str(vocab_size), str(max_order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for order, table in enumerate(count_ngrams(ids, vocab_size, max_order).tables, start=1):
        assert (np.load(folder / f"found{order}.npy") == [table.keys, table.counts]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("vocab_size", "max_order"), [(1000, 3), (WIDE, 5)])
def test_spark_gives_the_tables_of_memory(vocab_size: int, max_order: int, cluster: str, tmp_path: Path) -> None:
    assert_spark_counts(tmp_path, cluster, TEXT, vocab_size, max_order)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster: str, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        while not (tmp_path / "packed2.parquet").exists():
            time.sleep(0.01)
        while not killed:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):  # a process may end at any moment
                    if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                        process.kill()
                        killed.append(process.pid)
                        break
            time.sleep(0.01)

    killer = Thread(target=kill_one, daemon=True)
    killer.start()
    ids = np.minimum(np.random.default_rng(1).zipf(1.2, 5_000_000), 999).astype(np.uint16)
    assert_spark_counts(tmp_path, cluster, ids, 1000, 3)
    killer.join(timeout=1)
    assert killed


def test_a_cluster_that_does_not_answer_is_an_error_of_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(MachineError, match=r"the Spark cluster at spark://127\.0\.0\.1:1 does not answer"):
        count_ngrams(TEXT, 1000, 2, Spark(MEMORY, tmp_path, "spark://127.0.0.1:1"))


@pytest.mark.slow
def test_a_missing_java_is_an_error_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MachineError, match="Spark needs Java"):
        count_ngrams(TEXT, 1000, 2, Spark(MEMORY, tmp_path, "local"))


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

    # A text that is shorter than the order is an error.
    with pytest.raises(DataError, match="2 tokens are too few for n-grams of order 3"):
        count_ngrams(np.array([1, 2]), 3, 3)
