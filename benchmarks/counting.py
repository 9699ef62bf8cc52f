"""Counting a text that is larger than memory: on threads, and on a Dask cluster of two processes.

Writes a text of random words to a file, with frequencies as in Zipf's law. Counts it up to order 3 within a memory
setting, in a process of its own, then again on a cluster of one scheduler and two workers on this machine, and compares
the tables.

    python benchmarks/counting.py [--million-words 200] [--memory-gib 2] [--work build/counting]
"""

import argparse
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from words import VOCAB_SIZE, zipf_text

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.counts.counting import Chunking, count_ngrams

BLOCK = 1 << 22
ORDER = 3


def write_text(path: Path, num_words: int) -> None:
    def blocks() -> Iterator[np.ndarray]:
        for number, start in enumerate(range(0, num_words, BLOCK)):
            yield zipf_text(min(BLOCK, num_words - start), seed=number)

    write_blocks(path, np.dtype(np.uint16), num_words, blocks())


def count(path: Path, memory: int, folder: Path, scheduler: str | None) -> None:
    """Count in this process, and print the time, the peak memory and a hash of the tables as JSON."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begin = time.perf_counter()
    counts = count_ngrams(read_npy(path, mmap=True), VOCAB_SIZE, ORDER, Chunking(memory, folder, scheduler))
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    digest = hashlib.sha256()
    for table in counts.tables:
        for array in (table.keys, table.counts):
            for start in range(0, len(array), BLOCK):
                digest.update(np.ascontiguousarray(array[start : start + BLOCK]))
    rows = [len(table) for table in counts.tables]
    print(json.dumps({"seconds": seconds, "peak_gib": peak / 2**20, "rows": rows, "hash": digest.hexdigest()}))
    shutil.rmtree(folder)


def counted(arguments: argparse.Namespace, text: Path, scheduler: str | None) -> dict[str, object]:
    command = [sys.executable, __file__, "--count", str(text), "--memory-gib", str(arguments.memory_gib)]
    command += ["--work", str(arguments.work)] + (["--scheduler", scheduler] if scheduler else [])
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@contextmanager
def cluster(work: Path) -> Iterator[tuple[str, list[int]]]:
    """Start a scheduler and two workers; give the address and the process ids of the workers."""
    from distributed import Client

    file = work / "scheduler.json"
    file.unlink(missing_ok=True)
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *common]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny"]
    commands = [scheduler, *([*worker, "--local-directory", str(work / f"worker{n}")] for n in (1, 2))]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]
    try:
        with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, [process.pid for process in processes[1:]]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def peak_gib(pid: int) -> float:
    """Return the most memory that a process has held, as Linux counts it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million-words", type=float, default=200)
    parser.add_argument("--memory-gib", type=float, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/counting"))
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        memory = int(arguments.memory_gib * 2**30)
        count(arguments.count, memory, arguments.work / "tables", arguments.scheduler)
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    text, num_words = arguments.work / "text.npy", int(arguments.million_words * 1e6)
    write_text(text, num_words)
    print(f"{num_words:,} words, order {ORDER}, memory setting {arguments.memory_gib:g} GiB")
    threads = counted(arguments, text, None)
    rows = ", ".join(f"{size:,}" for size in threads["rows"])
    print(f"distinct n-grams by order: {rows}")
    print(f"threads: {threads['seconds']:.0f} s, peak resident {threads['peak_gib']:.2f} GiB")
    with cluster(arguments.work) as (address, workers):
        dask = counted(arguments, text, address)
        peaks = ", ".join(f"{peak_gib(pid):.2f}" for pid in workers)
    print(f"cluster of two worker processes: {dask['seconds']:.0f} s, peak resident {dask['peak_gib']:.2f} GiB")
    print(f"    of the workers: {peaks} GiB")
    print("equal tables" if threads["hash"] == dask["hash"] else "THE TABLES DIFFER")
    text.unlink()
    if threads["hash"] != dask["hash"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
