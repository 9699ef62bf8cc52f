"""Real full disks and permissions that hold; tests are skipped if this system does not allow making them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[Path]:
    if not shutil.which("mount"):
        pytest.skip("this system has no mount")
    done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this system does not allow mounting: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return filler


def as_owner() -> list[str]:
    """Return a prefix that makes a command obey permissions, which root does not."""
    if os.getuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("only setpriv makes root obey permissions")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
