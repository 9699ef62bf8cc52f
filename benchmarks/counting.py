"""Counting a text that is larger than memory: on threads, and on Dask clusters of 1, 2 and 4 processes.

Writes texts of random words as ids, with frequencies as in Zipf's law, five bytes a word. Counts each up to order 3
within a memory setting, in a process of its own, and compares the tables. A model of what counting costs, fitted to the
two smallest texts on two workers, is compared with what was measured, and predicts larger texts on larger clusters.

    python benchmarks/counting.py [--gigabytes 0.1 0.3 1] [--memory-gib 2] [--work build/counting]
"""

import argparse
import hashlib
import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np
from words import VOCAB_SIZE, zipf_text

from seqlm.core.files import read_npy, write_blocks
from seqlm.ngrams.counts.counting import Chunking, NgramCounter
from seqlm.ngrams.counts.shuffle import BYTES_PER_TOKEN

BLOCK = 1 << 22
ORDER = 3
BYTES_PER_WORD = 5
WORKERS = (1, 2, 4)
MEASURED_GIB = 2
ENTRY = 16
"""Bytes of a key and its count."""
DISK_GB_PER_S = 1
LARGER = ((1, 2, 2), (10, 8, 2), (100, 16, 8), (1000, 64, 16))
"""Gigabytes of text, workers, and the memory setting in GiB."""


def write_text(path: Path, num_words: int) -> None:
    def blocks() -> Iterator[np.ndarray]:
        for number, start in enumerate(range(0, num_words, BLOCK)):
            yield zipf_text(min(BLOCK, num_words - start), seed=number)

    write_blocks(path, np.dtype(np.uint16), num_words, blocks())


def memory_mb(pid: int | str, field: str) -> float:
    """Return the memory of a process as Linux counts it: VmRSS, what it holds, or VmHWM, the most it has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1000


def count(path: Path, memory: int, folder: Path, scheduler: str | None) -> None:
    """Count in this process, and print the time, the peak memory and a hash of the tables as JSON."""
    if scheduler:
        import distributed  # noqa: F401 (so that an idle process has it, too)
    idle, begin = memory_mb("self", "VmRSS"), time.perf_counter()
    counts = NgramCounter(read_npy(path, mmap=True), VOCAB_SIZE, ORDER, Chunking(memory, folder, scheduler)).count()
    seconds, peak = time.perf_counter() - begin, memory_mb("self", "VmHWM")
    digest = hashlib.sha256()
    for table in counts.tables:
        for array in (table.keys, table.counts):
            for start in range(0, len(array), BLOCK):
                digest.update(np.ascontiguousarray(array[start : start + BLOCK]))
    rows = [len(table) for table in counts.tables]
    print(
        json.dumps(
            {
                "end": time.time(),
                "seconds": seconds,
                "idle": idle,
                "peak": peak,
                "rows": rows,
                "digest": digest.hexdigest(),
            }
        )
    )


@dataclass
class Measured:
    """What counting a text took."""

    seconds: float
    idle: float
    """Megabytes that the process which runs the stage holds before it counts."""
    peak: float
    """The most that it holds."""
    rows: list[int]
    """Distinct n-grams by order."""
    digest: str
    disk: float = 0
    """Gigabytes of files at once, at most."""
    worker_peak: float = 0
    """Megabytes that a worker holds, at most."""
    transfer: float = 0
    """Gigabytes that all workers read and wrote."""
    phases: tuple[float, float, float] = (0, 0, 0)
    """Seconds of counting, of merging, and of writing tables."""


def counted(text: Path, arguments: argparse.Namespace, scheduler: str | None, workers: list[int]) -> Measured:
    folder = arguments.work / "tables"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, __file__, "--count", str(text), "--memory-gib", str(arguments.memory_gib)]
    command += ["--work", str(folder)] + (["--scheduler", scheduler] if scheduler else [])
    with Watcher(folder) as watcher:
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    shutil.rmtree(folder)
    values, seen = json.loads(output), watcher.first_seen
    end = values.pop("end")
    tables = end - seen.get("order", end)
    merging = end - seen.get("packed", end) - tables
    found = Measured(**values, disk=watcher.largest / 1e9)
    found.phases = found.seconds - merging - tables, merging, tables
    if workers:
        found.worker_peak = max(memory_mb(pid, "VmHWM") for pid in workers)
        found.transfer = sum(transferred(pid) for pid in workers) / 1e9
    return found


class Watcher:
    """Notes the size of a folder, and when the files of each phase appear, ten times a second."""

    def __init__(self, folder: Path) -> None:
        self.largest = 0
        self.first_seen: dict[str, float] = {}
        self._folder, self._is_over, self._thread = folder, Event(), Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._is_over.wait(0.1):
            files = list(self._folder.glob("tasks-*/*"))
            self.largest = max(self.largest, sum(map(size_of, files)))
            for phase in ("run", "packed", "order"):
                if any(phase in file.name for file in files):
                    self.first_seen.setdefault(phase, time.time())

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def size_of(path: Path) -> int:
    """Return the bytes that a file takes on the disk."""
    try:
        return path.stat().st_blocks * 512 if path.is_file() else 0
    except FileNotFoundError:
        return 0


def transferred(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))


@contextmanager
def cluster(work: Path, number: int) -> Iterator[tuple[str, list[int]]]:
    """Start a scheduler and workers; give the address and the process ids of the workers."""
    from distributed import Client

    file = work / "scheduler.json"
    file.unlink(missing_ok=True)
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *common]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny"]
    commands = [scheduler, *([*worker, "--local-directory", str(work / f"worker{n}")] for n in range(number))]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]
    try:
        with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=60)
            client.run(importlib.import_module, "seqlm.ngrams.counts.counting")
            address = client.scheduler.address
        yield address, [process.pid for process in processes[1:]]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Model:
    """What counting costs, from what two texts of ``sizes`` gigabytes cost on two workers with a core each."""

    sizes: tuple[float, float]
    small: Measured
    large: Measured

    def distinct(self, order: int, gigabytes: float) -> float:
        """Return the distinct n-grams, by Heaps' law."""
        few, many = self.small.rows[order - 1], self.large.rows[order - 1]
        exponent = math.log(many / few) / math.log(self.sizes[1] / self.sizes[0])
        return many * (gigabytes / self.sizes[1]) ** exponent

    def chunk(self, gigabytes: float, workers: int, memory_gib: float) -> float:
        """Return the gigabytes of text that a task counts."""
        tokens = min(memory_gib * 2**30 * 0.5 / BYTES_PER_TOKEN, gigabytes * 1e9 / BYTES_PER_WORD / (4 * workers))
        return max(tokens, 1 << 20) * BYTES_PER_WORD / 1e9

    def entries(self, gigabytes: float, workers: int, memory_gib: float) -> tuple[float, float]:
        """Return the entries of all runs, and those of the merged n-grams of order 2 and 3."""
        chunk = self.chunk(gigabytes, workers, memory_gib)
        return gigabytes / chunk * self.distinct(3, chunk), self.distinct(3, gigabytes) + self.distinct(2, gigabytes)

    def disk(self, *cluster: float) -> float:
        """Return the gigabytes that files take at once: runs and merged n-grams, or merged n-grams and tables."""
        runs, merged = self.entries(*cluster)
        return ENTRY * max(runs + merged, 2 * merged) / 1e9

    def transfer(self, *cluster: float) -> float:
        """Return the gigabytes that are read and written: text, runs, merged n-grams and tables."""
        runs, merged = self.entries(*cluster)
        text = 2 * cluster[0] / BYTES_PER_WORD
        return text + ENTRY * (2 * runs + 4 * merged + self.distinct(2, cluster[0])) / 1e9

    def worker_mb(self, *cluster: float) -> float:
        """Return the megabytes of a worker: what it needs without data, and so much for each token of a chunk."""
        chunks = [self.chunk(size, 2, MEASURED_GIB) for size in self.sizes]
        slope = (self.large.worker_peak - self.small.worker_peak) / (chunks[1] - chunks[0])
        return self.large.worker_peak + slope * (self.chunk(*cluster) - chunks[1])

    def seconds(self, gigabytes: float, workers: int, memory_gib: float) -> float:
        """Return the time if each worker has a core: so much for each token, for each entry and doubling of the runs
        that is merged, and for each row of the tables."""

        def work(size: float, *cluster: float) -> tuple[float, float, float]:
            runs, merged = self.entries(size, *cluster)
            return size, runs * math.log2(max(size / self.chunk(size, *cluster), 2)), merged

        fitted = work(self.sizes[1], 2, MEASURED_GIB)
        now = work(gigabytes, workers, memory_gib)
        phases = zip(self.large.phases, now, fitted, strict=True)
        return sum(seconds * units / units_then for seconds, units, units_then in phases) * 2 / workers


def print_model(model: Model, measured: dict[float, Measured]) -> None:
    print("\nmeasured / predicted from the two smallest texts, on two workers")
    print(f"{'GB':>5}{'seconds':>16}{'MB worker':>16}{'GB disk':>16}{'GB moved':>16}{'M trigrams':>16}")
    for size, found in measured.items():
        cluster = size, 2, MEASURED_GIB
        pairs = [
            (found.seconds, model.seconds(*cluster)), (found.worker_peak, model.worker_mb(*cluster)),
            (found.disk, model.disk(*cluster)), (found.transfer, model.transfer(*cluster)),
            (found.rows[2] / 1e6, model.distinct(3, size) / 1e6),
        ]  # fmt: skip
        print(f"{size:>5g}" + "".join(f"{f'{one:.3g} / {other:.3g}':>16}" for one, other in pairs))
    print(f"\npredicted; the shared disk gives {DISK_GB_PER_S:g} GB/s to all workers together")
    print(
        f"{'GB':>5}{'workers':>9}{'GiB':>5}{'min cores':>11}{'min disk':>10}{'GB worker':>11}{'GB disk':>9}"
        f"{'GB moved':>10}"
    )
    for size, workers, gib in LARGER:
        cluster = size, workers, gib
        moved = model.transfer(*cluster)
        print(
            f"{size:>5g}{workers:>9}{gib:>5}{model.seconds(*cluster) / 60:>11.1f}{moved / DISK_GB_PER_S / 60:>10.1f}"
            f"{model.worker_mb(*cluster) / 1000:>11.1f}{model.disk(*cluster):>9.0f}{moved:>10.0f}"
            f"   {model.distinct(3, size) / 1e6:,.0f} M trigrams"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.1, 0.3, 1])
    parser.add_argument("--memory-gib", type=float, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/counting"))
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        count(arguments.count, int(arguments.memory_gib * 2**30), arguments.work, arguments.scheduler)
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} cores, order {ORDER}, memory setting {arguments.memory_gib:g} GiB")
    print(
        f"{'GB':>5} {'counted by':<12}{'seconds':>8}{'counting':>9}{'merging':>8}{'tables':>8}{'MB client':>10}"
        f"{'MB worker':>10}{'GB disk':>8}{'GB moved':>9}"
    )
    measured = {size: compare(size, arguments) for size in arguments.gigabytes}
    if len(measured) > 1:
        sizes = tuple(measured)[:2]
        print_model(Model(sizes, *(measured[size] for size in sizes)), measured)


def compare(size: float, arguments: argparse.Namespace) -> Measured:
    """Count a text in all ways; return what two workers took."""
    text, results = arguments.work / "text.npy", {}
    write_text(text, int(size * 1e9 / BYTES_PER_WORD))
    for number in (0, *WORKERS):
        if number == 0:
            found, name = counted(text, arguments, None, []), "threads"
        else:
            with cluster(arguments.work, number) as (address, workers):
                found, name = counted(text, arguments, address, workers), f"{number} workers"
        results[number] = found
        print(
            f"{size:>5g} {name:<12}{found.seconds:>8.1f}{found.phases[0]:>9.1f}{found.phases[1]:>8.1f}"
            f"{found.phases[2]:>8.1f}{found.peak - found.idle:>+10.0f}{found.worker_peak:>10.0f}{found.disk:>8.2f}"
            f"{found.transfer:>9.2f}",
            flush=True,
        )
    text.unlink()
    if len({found.digest for found in results.values()}) > 1:
        sys.exit("THE TABLES DIFFER")
    return results[2]


if __name__ == "__main__":
    main()
