"""The tables that DuckDB and Spark count are those that are counted in memory."""

import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqlm.core.errors import MachineError
from seqlm.ngrams.counts import counting
from seqlm.ngrams.counts.count_tables import Ids
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.ngrams import engines
from seqlm.pipeline.ngrams.engines import DuckDB, Spark, bytes_needed, choose_engine
from stages_by_hand import run_python, succeeded

TEXT = np.minimum(np.random.default_rng(0).zipf(1.3, 60_000), 999).astype(np.uint16)
MEMORY = 1 << 29
WIDE = 1 << 16
"""A vocabulary of which only three tokens fit into one packed key."""
texts = st.lists(st.integers(0, 4), min_size=3, max_size=60)


@given(texts, st.integers(1, 5), st.sampled_from([5, WIDE]), st.sampled_from([1, 7, 1 << 20]))
def test_duckdb_gives_the_tables_of_memory(text: list[int], max_order: int, vocab_size: int, block: int) -> None:
    assume(len(text) >= max_order)
    ids = np.array(text, np.uint16)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "IDS_AT_ONCE", block)
        patch.setattr(counting, "BLOCK_ROWS", block)
        found = count_ngrams(ids, vocab_size, max_order, DuckDB(MEMORY, Path(folder)))
    expected = count_ngrams(ids, vocab_size, max_order)
    assert found.starts == expected.starts
    for ours, theirs in zip(found.tables, expected.tables, strict=True):
        assert np.array_equal([ours.keys, ours.counts], [theirs.keys, theirs.counts])


def test_what_needs_more_than_the_setting_is_counted_by_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "IDS_AT_ONCE", 10_000)
    counts = count_ngrams(TEXT, 1000, 3)
    # Each token takes 17 bytes and each distinct n-gram 32; the sample has more of these for its length.
    needed, fewest = (bytes_needed(TEXT, 1000, 3), 17 * len(TEXT) + 32 * sum(map(len, counts.tables[1:])))
    assert fewest < needed < 2 * fewest
    assert choose_engine(TEXT, 1000, 3, needed, tmp_path) is None
    assert choose_engine(TEXT, 1000, 3, needed - 1, tmp_path) == DuckDB(needed - 1, tmp_path)
    monkeypatch.setattr(engines, "machine_memory", lambda: 2 * needed)
    assert choose_engine(TEXT, 1000, 3, None, tmp_path) is None
    monkeypatch.setattr(engines, "machine_memory", lambda: 2 * needed - 2)
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
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.pipeline.ngrams.engines import Spark
folder, address, vocab_size, max_order = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
counts = count_ngrams(np.load(folder / "text.npy"), vocab_size, max_order, Spark(1 << 30, folder, address))
for order, table in enumerate(counts.tables, start=1):
    np.save(folder / f"found{order}.npy", np.stack([table.keys, table.counts]))
"""


def assert_spark_counts(folder: Path, address: str, ids: Ids, vocab_size: int, max_order: int) -> None:
    """Count in a process of its own, which ends with its cluster."""
    np.save(folder / "text.npy", ids)
    succeeded(run_python(COUNT, folder, address, vocab_size, max_order))
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
