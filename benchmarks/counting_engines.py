"""Counting trigrams with other engines on this machine: DuckDB, Polars, and Dask's own shuffle.

Each gets the same 64-bit keys, one for each trigram of a text of random words, in Parquet files, and writes each key
with its count, sorted. `pip install duckdb polars 'dask[dataframe]'`: what is not installed is left out.

    python benchmarks/counting_engines.py [--million-words 60] [--memory-gib 2] [--work build/engines]
"""

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
from processes import measured
from words import VOCAB_SIZE, zipf_text

BLOCK = 1 << 22
BITS = 16
NEEDED = {"seqlm": "seqlm", "duckdb": "duckdb", "polars": "polars", "dask": "pyarrow"}


def write_keys(folder: Path, num_words: int) -> None:
    """Write the text, and the keys of its trigrams as Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "keys").mkdir(parents=True)
    starts = range(0, num_words, BLOCK)
    blocks = [zipf_text(min(BLOCK, num_words - start), seed=number) for number, start in enumerate(starts)]
    ids = np.concatenate(blocks).astype(np.uint16)
    np.save(folder / "text.npy", ids)
    for start in starts:
        part = ids[start : start + BLOCK + 2].astype(np.int64)
        keys = part[:-2] << 2 * BITS | part[1:-1] << BITS | part[2:]
        pq.write_table(pa.table({"key": keys}), folder / "keys" / f"{start:012}.parquet", compression="none")


def count_seqlm(folder: Path, memory: int) -> None:
    from seqlm.ngrams.counts.counting import Chunking, NgramCounter

    (folder / "tables").mkdir()
    ids = np.load(folder / "text.npy", mmap_mode="r")
    counts = NgramCounter(ids, VOCAB_SIZE, 3, Chunking(memory, folder / "tables")).count()
    print(len(counts.table(3)))


def count_duckdb(folder: Path, memory: int) -> None:
    import duckdb

    duckdb.execute(f"SET memory_limit = '{memory} B'; SET temp_directory = '{folder}/spilled'")
    source = f"read_parquet('{folder}/keys/*.parquet')"
    query = f"SELECT key, count(*) AS count FROM {source} GROUP BY key ORDER BY key"
    duckdb.execute(f"COPY ({query}) TO '{folder}/counts.parquet' (COMPRESSION uncompressed)")
    print(duckdb.execute(f"SELECT count(*) FROM '{folder}/counts.parquet'").fetchone()[0])


def count_polars(folder: Path, _: int) -> None:  # it has no memory setting
    import polars as pl

    query = pl.scan_parquet(folder / "keys").group_by("key").len().sort("key")
    query.sink_parquet(folder / "counts.parquet", compression="uncompressed", engine="streaming")
    print(pl.scan_parquet(folder / "counts.parquet").select(pl.len()).collect().item())


def count_dask(folder: Path, memory: int) -> None:
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    def count_part(part: pd.DataFrame) -> pd.DataFrame:
        keys, counts = np.unique(part["key"].to_numpy(), return_counts=True)
        return pd.DataFrame({"key": keys, "count": counts, "range": keys >> 2 * BITS})

    def add(part: pd.DataFrame) -> pd.DataFrame:
        return part.groupby("key", sort=True)["count"].sum().reset_index()

    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": memory, "local_directory": folder}
    with LocalCluster(**options, dashboard_address=None) as cluster, Client(cluster):
        parts = dd.read_parquet(folder / "keys").map_partitions(count_part)
        shuffled = parts.shuffle("range", npartitions=8, shuffle_method="p2p")
        shuffled.map_partitions(add).to_parquet(folder / "counts", compression=None)
        print(len(dd.read_parquet(folder / "counts")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million-words", type=float, default=60)
    parser.add_argument("--memory-gib", type=float, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/engines"))
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        globals()[f"count_{arguments.engine}"](arguments.work, int(arguments.memory_gib * 2**30))
        return
    if not importlib.util.find_spec("pyarrow"):
        print("pyarrow is not installed: nothing to compare with")
        return
    shutil.rmtree(arguments.work, ignore_errors=True)
    write_keys(arguments.work, int(arguments.million_words * 1e6))
    print(f"{arguments.million_words:g} million words, memory setting {arguments.memory_gib:g} GiB")
    for engine, package in NEEDED.items():
        if importlib.util.find_spec(package):
            command = [sys.executable, __file__, "--engine", engine, *sys.argv[1:]]
            rows = arguments.work / "rows"
            seconds, peak = measured(command, stdout=rows)
            print(f"{engine:<8}{seconds:>8.1f} s{peak:>8.2f} GiB  {int(rows.read_text()):,} trigrams", flush=True)
    shutil.rmtree(arguments.work)


if __name__ == "__main__":
    main()
