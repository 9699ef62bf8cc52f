"""Running commands and measuring what they take."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

MEASURE = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss / 2**20, status, file=sys.stderr)
"""


def measured(
    command: list[str | Path],
    stdin: Path | None = None,
    stdout: Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[float, float]:
    """Run a command; return its seconds and the most memory it held, in GiB.

    A small process stands between: Linux counts the memory of whoever starts a program as the program's own.
    """
    source = stdin.open() if stdin else subprocess.DEVNULL
    target = stdout.open("w") if stdout else subprocess.DEVNULL
    between = [sys.executable, "-c", MEASURE, *command]
    done = subprocess.run(
        between, stdin=source, stdout=target, stderr=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment
    )
    seconds, peak, status = done.stderr.split()[-3:]
    if int(status):
        sys.exit(f"{command[0]} failed: {done.stderr}")
    return float(seconds), float(peak)
