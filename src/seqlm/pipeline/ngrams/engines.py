"""Engines that count n-grams beyond memory: DuckDB, and Apache Spark on a cluster.

They answer the same query over packed n-grams, divide it, and spill to disk by themselves. Keys and
counts come back sorted, as files that are mapped into memory.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from seqlm.core.errors import MachineError, needs_extra
from seqlm.core.memory import machine_memory
from seqlm.ngrams.counts.count_tables import IDS_AT_ONCE, Ids
from seqlm.ngrams.counts.counting import Part, count_ngrams

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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

    def count(self, blocks: Iterator[Ids], order: int) -> Part:
        """Return the counts of keys, as files mapped into memory."""
        with self._connected(blocks, order) as connection:
            return self._fetched(connection, _COUNT, order)

    def _connected(self, blocks: Iterator[Ids], order: int) -> "DuckDBPyConnection":
        """Return a connection to a new database in memory, whose table ``packed`` has the keys."""
        with needs_extra("pipeline", "counting beyond memory"):
            import duckdb
        import pandas as pd

        path = self.folder / f"packed{order}"
        with path.open("wb") as file:
            for block in blocks:
                block.tofile(file)
        limit, spill = f"{int(self.memory * _SHARE_OF_ENGINE)}B", str(self.folder)
        config: dict[str, Any] = {
            "memory_limit": limit,
            "temp_directory": spill,
            "preserve_insertion_order": "false",
        }
        connection = duckdb.connect(config=config)
        keys = np.asarray(np.memmap(path, np.int64, "r"))
        connection.register("packed", pd.DataFrame({"key": keys}, copy=False))
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

    def count(self, blocks: Iterator[Ids], order: int) -> Part:
        """Return the counts of keys. Raises MachineError, in one line, if the cluster cannot
        count."""
        keys, counts = (self.folder / f"{name}{order}.parquet" for name in ("packed", "counted"))
        with self._connected(blocks, order) as connection:
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
    most = _bytes_of(len(ids), max_order - 1)
    fits = most <= memory or bytes_needed(ids, vocab_size, max_order) <= memory
    return None if fits else DuckDB(memory, folder)


def bytes_needed(ids: Ids, vocab_size: int, max_order: int) -> int:
    """Return how much memory counting takes, estimated from the first million tokens of a stream.

    The share of distinct n-grams falls with the length of a text, so the estimate is rather too
    large.
    """
    sample = ids[:IDS_AT_ONCE]
    tables = count_ngrams(sample, vocab_size, max_order).tables
    entries = sum(map(len, tables[1:])) / len(sample)
    return _bytes_of(len(ids), entries)


def _bytes_of(num_tokens: int, entries_per_token: float) -> int:
    """Return how much memory counting takes, given the distinct n-grams of two tokens and more."""
    return int(num_tokens * (_BYTES_OF_KEY + _BYTES_OF_ENTRY * entries_per_token))


_SHARE_OF_MACHINE = 0.5
"""Share of this machine's memory that is used if the setting is ``auto``."""
_BYTES_OF_KEY = 17
"""The packed key of each position, as much space to sort them and then for the distinct ones, and
whether one differs from the one before."""
_BYTES_OF_ENTRY = 32
"""A distinct n-gram: its key and its count, and what counting the order below adds."""
