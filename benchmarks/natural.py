"""Natural text for benchmarks: the sources and documentation installed on this machine."""

import hashlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = {
    ".c", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".html", ".inl", ".js", ".md", ".php", ".pl", ".pm", ".pod",
    ".py", ".pyi", ".rst", ".tex", ".txt", ".vim", ".xml",
}  # fmt: skip
FOLDERS = (sys.prefix, f"{sys.base_prefix}/lib", "/usr/share", "/usr/include", "/usr/lib")
LARGEST_FILE = 2_000_000
"""Larger files are more often tables of data than text."""


def write_natural_text(path: Path, num_bytes: int) -> int:
    """Write ``num_bytes`` of text, files in random order; return how many of the bytes are no repetition.

    If the machine has less text, it is repeated in another order.
    """
    files = [file for folder in FOLDERS for file in text_files(Path(folder))]
    seen: set[bytes] = set()
    written = distinct = 0
    with path.open("wb") as target:
        for seed in range(1000):
            random.Random(seed).shuffle(files)
            for file in files:
                content = content_of(file)
                if seed == 0:
                    digest = hashlib.sha256(content).digest()
                    content = b"" if digest in seen else content
                    seen.add(digest)
                    distinct = min(distinct + len(content), num_bytes)
                room = num_bytes - written
                written += target.write(content[:room].decode(errors="ignore").encode())
                if len(content) >= room:
                    return distinct
    sys.exit(f"no text in {', '.join(FOLDERS)}")


def text_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            if file.suffix in SUFFIXES and not file.is_symlink() and file.stat().st_size <= LARGEST_FILE:
                yield file


def content_of(file: Path) -> bytes:
    """Return the bytes of a text file in UTF-8, and nothing for any other file."""
    try:
        content = file.read_bytes()
        content.decode()
    except (OSError, UnicodeDecodeError):
        return b""
    return b"" if b"\0" in content else content
