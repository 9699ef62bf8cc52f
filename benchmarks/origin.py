"""The first line of a result: the code and the machine that made it."""

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def machine() -> str:
    """Return the processor's name and the number of cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def origin() -> str:
    """Return the commit, with a + if files have changed since, and the machine."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"], cwd=ROOT, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return f"commit {described.stdout.strip()}, {machine()}"
