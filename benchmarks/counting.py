"""Counting n-grams of words up to order 3 in memory, with DuckDB, with Polars, and with Spark; the tables must agree.

Writes texts of random words as ids, with frequencies as in Zipf's law, five bytes a word. Counts each in a process of
its own. DuckDB gets a memory setting. Polars and Spark are left out if they are not installed; Spark runs as two
workers on this machine, and its processes are not part of the peak.

    python benchmarks/counting.py [--gigabytes 0.1 1] [--memory-gib 1] [--work build/counting]
        > benchmarks/results/counting.txt
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from origin import origin
from words import VOCAB_SIZE, zipf_text

from seqlm.core.files import sha256_of_file
from seqlm.core.stored import read_array, write_array
from seqlm.ngrams.counts.count_tables import Ids
from seqlm.ngrams.counts.counting import Engine, Part, count_ngrams
from seqlm.pipeline.ngrams.engines import DuckDB, Spark

BLOCK = 1 << 22
ORDER = 3
BYTES_PER_WORD = 5


class Polars(DuckDB):
    """Polars, which has no limit of memory."""

    def count(self, blocks: Iterator[Ids], order: int) -> Part:  # noqa: ARG002
        """Return the counts of keys."""
        import polars as pl

        keys = pl.LazyFrame({"key": np.concatenate(list(blocks))})
        counted = keys.group_by("key").agg(n=pl.len().cast(pl.Int64)).sort("key")
        found = counted.collect(engine="streaming")
        return found["key"].to_numpy().copy(), found["n"].to_numpy()


ENGINES: dict[str, Callable[[int, Path], Engine | None]] = {
    "memory": lambda *_: None,
    "duckdb": DuckDB,
    "polars": Polars,
    "pyspark": lambda memory, folder: Spark(memory, folder, "local-cluster[2,1,2048]"),
}


def write_text(path: Path, num_words: int) -> None:
    starts = enumerate(range(0, num_words, BLOCK))
    blocks = (zipf_text(min(BLOCK, num_words - start), seed=number) for number, start in starts)
    write_array(path, blocks, np.uint16, num_words)


def peak_mb(field: str) -> float:
    """Return the memory of this process as Linux counts it: VmRSS, what it holds, or VmHWM, the most it has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1000


def count(name: str, text: Path, memory: int, folder: Path) -> None:
    """Count in this process, and print the time, the peak memory and a hash of the tables as JSON."""
    engine, idle, begin = ENGINES[name](memory, folder), peak_mb("VmRSS"), time.perf_counter()
    counts = count_ngrams(read_array(text, sha256_of_file(text), "make it again"), VOCAB_SIZE, ORDER, engine)
    found = {"seconds": time.perf_counter() - begin, "peak": peak_mb("VmHWM") - idle}
    digest = hashlib.sha256()
    for table in counts.tables:
        digest.update(np.asarray(table.keys, np.int64).data)
        digest.update(np.asarray(table.counts, np.int64).data)
    rows = [len(table) for table in counts.tables]
    print(json.dumps(found | {"rows": rows, "digest": digest.hexdigest()}))


def compare(size: float, memory: int, work: Path) -> None:
    """Count a text in all ways."""
    text, digests = work / "text.npy", set()
    write_text(text, int(size * 1e9 / BYTES_PER_WORD))
    for name in ENGINES:
        spec = find_spec(name)
        if name != "memory" and spec is None:
            print(f"{size:>5g} {name:<10} is not installed")
            continue
        folder = work / "tables"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        command = [sys.executable, __file__, "--count", name, "--memory-gib", str(memory / 2**30), "--work", str(work)]
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        if name == "pyspark" and spec is not None and spec.origin is not None:
            environment["SPARK_HOME"] = str(Path(spec.origin).parent)
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        found = json.loads(done.stdout.splitlines()[-1])
        digests.add(found["digest"])
        rows = ", ".join(f"{number:,}" for number in found["rows"])
        print(f"{size:>5g} {name:<10}{found['seconds']:>8.1f}{found['peak']:>12,.0f}   {rows}", flush=True)
    text.unlink()
    if len(digests) > 1:
        sys.exit("THE TABLES DIFFER")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.1, 1])
    parser.add_argument("--memory-gib", type=float, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/counting"))
    parser.add_argument("--count", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    memory = int(arguments.memory_gib * 2**30)
    if arguments.count:
        count(arguments.count, arguments.work / "text.npy", memory, arguments.work / "tables")
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"{origin()}; order {ORDER}, ngrams.memory {arguments.memory_gib:g} GiB")
    print(f"{'GB':>5} {'engine':<10}{'seconds':>8}{'MB at most':>12}   distinct n-grams by order")
    for size in arguments.gigabytes:
        compare(size, memory, arguments.work)


if __name__ == "__main__":
    main()
