"""Counting n-grams: with NumPy if they fit into memory, with an engine if not: DuckDB, or Apache
Spark on a cluster.

An n-gram is packed into one integer, ``(t1 * V + t2) * V + t3``. In memory, the longest n-grams
that fit into 63 bits are sorted and run-length counted, and the shorter ones follow from them; an
engine counts each order. Longer n-grams are counted as pairs of their prefix's row in the table
below and their last token.

Engines answer the same query over packed n-grams, divide it, and spill to disk by themselves. Keys
and counts come back sorted, as files that are mapped into memory.
"""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, MachineError, needs_extra
from seqlm.core.memory import machine_memory
from seqlm.ngrams.counts.count_tables import BLOCK_ROWS, IDS_AT_ONCE, Ids, NgramCounts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Part = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Rising keys, and how often each occurs."""
_COUNT = "SELECT key, count(*) AS n FROM packed GROUP BY key"
_SHARE_OF_ENGINE = 0.5
"""Share of the memory setting that DuckDB may take for a query; the rest is for Python, and for
what is mapped."""
_VECTORS = IDS_AT_ONCE // 2048
"""Blocks of 2,048 rows that are fetched at once."""
_CONNECT_S = 10
"""Seconds to wait for a cluster to answer."""


@dataclass(frozen=True)
class DuckDB:
    """DuckDB, which runs in this process."""

    memory: int
    folder: Path

    def count(self, columns: Sequence[Ids], base: int, order: int) -> Part:
        """Return the counts of the keys ``(c1 * base + c2) * base + ...`` of some columns, for
        n-grams of an order.

        The arrays that are returned are files mapped into memory, which may be changed.
        """
        with self._connected(columns, base) as connection:
            return self._fetched(connection, _COUNT, order)

    def store(self, blocks: Iterator[Ids], order: int) -> Ids:
        """Return numbers that come in blocks as one array, mapped from a file."""
        path = self.folder / f"prefixes{order}"
        with path.open("wb") as file:
            for block in blocks:
                block.astype(np.int64, copy=False).tofile(file)
        return np.asarray(np.memmap(path, np.int64, "r"))

    def _connected(self, columns: Sequence[Ids], base: int) -> "DuckDBPyConnection":
        """Return a connection to a new database in memory, whose view ``packed`` has the keys of
        the columns."""
        with needs_extra("pipeline", "counting beyond memory"):
            import duckdb
        import pandas as pd

        limit, spill = f"{int(self.memory * _SHARE_OF_ENGINE)}B", str(self.folder)
        config: dict[str, Any] = {
            "memory_limit": limit,
            "temp_directory": spill,
            "preserve_insertion_order": "false",
        }
        connection = duckdb.connect(config=config)
        tokens = {f"t{place}": np.asarray(column) for place, column in enumerate(columns)}
        connection.register("tokens", pd.DataFrame(tokens, copy=False))
        key = "t0::BIGINT"
        for name in list(tokens)[1:]:
            key = f"({key}) * {base} + {name}"
        connection.execute(f"CREATE VIEW packed AS SELECT {key} AS key FROM tokens")
        return connection

    def _fetched(self, connection: "DuckDBPyConnection", query: str, order: int) -> Part:
        """Write the answer of a query to files, sorted by key, and return them mapped into
        memory."""
        paths = [self.folder / f"{name}{order}" for name in ("keys", "counts")]
        answer = connection.execute(f"{query} ORDER BY key")
        with paths[0].open("wb") as keys, paths[1].open("wb") as counts:
            while len(chunk := answer.fetch_df_chunk(_VECTORS)):
                chunk["key"].to_numpy(np.int64).tofile(keys)
                chunk["n"].to_numpy(np.int64).tofile(counts)
        keys_array, counts_array = (np.asarray(np.memmap(path, np.int64, "r+")) for path in paths)
        return keys_array, counts_array


@dataclass(frozen=True)
class Spark(DuckDB):
    """A cluster of Apache Spark. DuckDB writes the keys as Parquet, and reads the counts that Spark
    writes.

    The workers must see ``folder`` at the same path. Spark's own shuffle and recovery do the work.
    """

    address: str
    """What Spark calls the master, such as ``spark://HOST:7077``."""

    def count(self, columns: Sequence[Ids], base: int, order: int) -> Part:
        """Return the counts of keys. Raises MachineError, in one line, if the cluster cannot
        count."""
        keys, counts = (self.folder / f"{name}{order}.parquet" for name in ("packed", "counted"))
        with self._connected(columns, base) as connection:
            connection.table("packed").write_parquet(str(keys))
            self._ask(keys.absolute(), counts.absolute())
            connection.read_parquet(f"{counts}/*.parquet").create_view("counted")
            return self._fetched(connection, "SELECT key, n FROM counted", order)

    def _ask(self, source: Path, target: Path) -> None:
        """Let the cluster count the keys of a file, and write the counts to a folder."""
        with needs_extra("cluster", "counting on a cluster"):
            from py4j.protocol import Py4JError
            from pyspark.errors import PySparkException, PySparkRuntimeError
            from pyspark.sql import SparkSession

        address = urlsplit(self.address)
        if address.scheme == "spark":  # a standalone cluster; Spark itself would wait for minutes
            try:
                socket.create_connection(
                    (address.hostname or "", address.port or 7077), timeout=_CONNECT_S
                ).close()
            except OSError as error:
                raise MachineError(
                    f"the Spark cluster at {self.address} does not answer: start it, or unset "
                    "SPARK_MASTER"
                ) from error
        builder = SparkSession.builder.master(self.address).appName("seqlm")
        try:
            session: Any = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        except PySparkRuntimeError as error:
            raise MachineError(
                "Spark needs Java: install a JDK of version 17 or later, or set JAVA_HOME"
            ) from error
        session.sparkContext.setLogLevel("OFF")
        try:
            session.read.parquet(f"file://{source}").createOrReplaceTempView("packed")
            session.sql(_COUNT).write.parquet(f"file://{target}", mode="overwrite")
        except (PySparkException, Py4JError) as error:
            cause = next((line for line in str(error).splitlines() if line.strip()), "no message")
            raise MachineError(
                f"the Spark cluster at {self.address} cannot count: {cause.strip()}: its workers "
                "must see "
                f"{self.folder} at the same path, and be able to write there"
            ) from error


_LARGEST_KEY = 2**63 - 1


def count_ngrams(
    ids: Ids, vocab_size: int, max_order: int, engine: DuckDB | None = None
) -> NgramCounts:
    """Count the n-grams of order 1 to ``max_order`` in one stream of tokens, in memory or with an
    engine.

    Raises DataError if the stream has fewer than ``max_order`` tokens.
    """
    if len(ids) < max_order:
        raise DataError(
            f"{len(ids)} tokens are too few for n-grams of order {max_order}: lower "
            "ngrams.max_order"
        )
    packable = max(
        order
        for order in range(1, max_order + 1)
        if order == 1 or vocab_size**order <= _LARGEST_KEY
    )
    if engine is None:
        packed = _packed_in_memory(ids, vocab_size, packable)
    else:
        packed = [
            engine.count(_columns(ids, order), vocab_size, order)
            for order in range(2, packable + 1)
        ]
    for (below, _), (keys, _) in reversed(list(pairwise(packed))):
        _replace_prefixes_by_rows(keys, below, vocab_size)
    counts = NgramCounts([_unigrams(ids, vocab_size), *packed])
    # Of the n-gram at each position; those of an order are found while the one below is counted.
    rows = ids
    if engine is None and 1 < packable < max_order:
        rows = np.unique(_keys(_columns(ids, packable), vocab_size), return_inverse=True)[1]
    for order in range(packable + 1, max_order + 1):
        if engine is None:
            pairs = _keys([rows[:-1], ids[order - 1 :]], vocab_size)
            keys, rows, sizes = np.unique(pairs, return_inverse=True, return_counts=True)
            counts.append(keys, sizes)
        else:
            blocks = (
                counts.rows_of(block, order - 1)[-1] for block in _overlapping(ids, order - 1)
            )
            counts.append(
                *engine.count(
                    [engine.store(blocks, order)[:-1], ids[order - 1 :]], vocab_size, order
                )
            )
    counts.starts = [int(rows[0]) for rows in counts.rows_of(ids[:max_order], max_order)]
    return counts


def choose_engine(
    ids: Ids,
    vocab_size: int,
    max_order: int,
    memory: int | None,
    folder: Path,
    spark: str | None = None,
) -> DuckDB | None:
    """Return what counts a stream of tokens; None if it is counted in memory.

    ``memory``: bytes that counting may take; None: half of what this machine has. ``folder``: for
    the counts of an engine, and what it spills; it must exist as long as they are used. ``spark``:
    the address of a Spark cluster, which then counts in any case.
    """
    if spark is not None:
        return Spark(memory or 1 << 30, folder, spark)
    memory = memory or int(machine_memory() * _SHARE_OF_MACHINE)
    return None if bytes_needed(ids, vocab_size, max_order) <= memory else DuckDB(memory, folder)


def bytes_needed(ids: Ids, vocab_size: int, max_order: int) -> int:
    """Return how much memory counting takes, estimated from the first million tokens of a stream.

    The share of distinct n-grams falls with the length of a text, so the estimate is rather too
    large.
    """
    if len(ids) <= IDS_AT_ONCE:
        return len(ids) * (_BYTES_OF_KEY + _BYTES_OF_ENTRY * (max_order - 1))
    sample = count_ngrams(ids[:IDS_AT_ONCE], vocab_size, max_order)
    entries = sum(len(table) for table in sample.tables[1:]) / IDS_AT_ONCE
    return int(len(ids) * (_BYTES_OF_KEY + _BYTES_OF_ENTRY * entries))


_SHARE_OF_MACHINE = 0.5
"""Share of this machine's memory that is used if the setting is ``auto``."""
_BYTES_OF_KEY = 17
"""The packed key of each position, the distinct ones among them, and whether one differs from the
one before."""
_BYTES_OF_ENTRY = 32
"""A distinct n-gram: its key and its count, and what counting the order below adds."""


def _unigrams(ids: Ids, vocab_size: int) -> Part:
    counted = (np.bincount(block, minlength=vocab_size) for block in _overlapping(ids, 1))
    return np.arange(vocab_size), sum(counted, np.zeros(vocab_size, np.int64))


def _columns(ids: Ids, order: int) -> list[Ids]:
    """Return the first, second, ... token of the n-grams of a stream."""
    return [ids[place : len(ids) - order + 1 + place] for place in range(order)]


def _keys(
    columns: Sequence[Ids], base: int, dtype: type[np.integer] = np.int64
) -> NDArray[np.integer]:
    keys = columns[0].astype(dtype)
    for column in columns[1:]:
        keys *= base
        np.add(keys, column, out=keys, casting="unsafe")
    return keys


def _borders(keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where the runs of equal keys begin among sorted keys, and where the last one ends."""
    found = np.ones(len(keys) + 1, bool)
    np.not_equal(keys[1:], keys[:-1], out=found[1:-1])
    return np.flatnonzero(found)


def _packed_in_memory(ids: Ids, vocab_size: int, highest: int) -> list[Part]:
    """Return the packed keys and the counts of order 2 to the highest one.

    An n-gram occurs as often as all its continuations together, and once more if the stream ends
    with it.
    """
    if highest == 1:
        return []
    dtype = (
        np.uint32 if vocab_size**highest <= 2**32 else np.int64
    )  # the smaller ones are sorted in half the time
    keys = _keys(_columns(ids, highest), vocab_size, dtype)
    keys.sort()
    borders = _borders(keys)
    keys, counts = keys[borders[:-1]].astype(np.int64, copy=False), np.diff(borders)
    packed = [(keys, counts)]
    for order in range(highest - 1, 1, -1):
        prefixes = keys // vocab_size
        firsts = _borders(prefixes)[:-1]
        keys, counts = prefixes[firsts], np.add.reduceat(counts, firsts)
        last = int(_keys(_columns(ids[len(ids) - order :], order), vocab_size)[0])
        place = int(np.searchsorted(keys, last))
        if place == len(keys) or keys[place] != last:
            keys, counts = np.insert(keys, place, last), np.insert(counts, place, 0)
        counts[place] += 1
        packed.append((keys, counts))
    return packed[::-1]


def _replace_prefixes_by_rows(
    keys: NDArray[np.integer], below: NDArray[np.integer], vocab_size: int
) -> None:
    """Make packed keys those of a table, in place: the prefix becomes its row among the packed keys
    below."""
    for start in range(0, len(keys), BLOCK_ROWS):
        block = keys[start : start + BLOCK_ROWS]
        prefixes = block // vocab_size
        tokens = block - prefixes * vocab_size
        borders = _borders(prefixes)
        rows = np.searchsorted(below, prefixes[borders[:-1]])
        block[:] = np.repeat(rows, np.diff(borders)) * vocab_size + tokens


def _overlapping(ids: Ids, order: int) -> Iterator[Ids]:
    """Yield a stream in blocks that together have each of its n-grams once."""
    for start in range(0, len(ids) - order + 1, IDS_AT_ONCE):
        yield ids[start : start + IDS_AT_ONCE + order - 1]
