"""The header and licence that Project Gutenberg adds to its texts."""

import re
from pathlib import Path

_HINT = b"PROJECT GUTENBERG EBOOK"
_MARKER = re.compile(rb"\*\*\* ?(START|END) OF TH(?:E|IS) " + _HINT)
_BLOCK_BYTES = 1 << 20
_MAX_MARKER = 64
"""Bytes of a marker, at most."""


def boilerplate_share(path: Path) -> float:
    """Return the share of a file that is before the start marker and after the end marker; 0 if it has neither."""
    size, offset, tail = path.stat().st_size, 0, b""
    start, end = None, size
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            data = tail + block
            for marker in _MARKER.finditer(data) if _HINT in data else ():
                position = offset - len(tail) + marker.start()
                if marker[1] == b"END":
                    end = position
                elif start is None:
                    start = position
            offset, tail = offset + len(block), data[-_MAX_MARKER:]
    return ((start or 0) + size - end) / max(size, 1)
