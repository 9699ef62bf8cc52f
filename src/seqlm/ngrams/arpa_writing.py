"""The ARPA format of n-gram models, and writing it, plain or ``.gz``.

The format lists every n-gram with log10 of its probability and, where it can be a
context, log10 of its backoff weight. White space parts its fields, so tokens that hold
some are written with escapes: ``\\s`` for a space, ``\\n`` for a line end, ``\\t`` for a tab,
``\\r`` for a return, ``\\\\`` for a backslash, ``\\u`` and four hexadecimal digits for other
white space and control characters. ``<s>`` and ``</s>``, which readers of the format demand, are listed with
probability zero (-99): a stream has neither. A token of the text that is spelt like one
of them has its ``<`` escaped.
"""

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import replacing
from seqlm.ngrams.models import KneserNey, Probs

NEVER = -99.0
MARKS = ("<s>", "</s>")
_ESCAPES = {"\\": "\\\\", " ": "\\s", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SPECIAL = re.compile(r"[\\\s\x00-\x1f]")
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}

_BLOCK_ROWS = 1 << 16
"""N-grams that are formatted at once."""
_MAX_WIDTH = 64
"""Bytes of the longest token that is formatted as a column of a matrix; longer ones are rare."""
_DIGITS = 10_000
_GROUPS = np.array([f"{number:04d}" for number in range(_DIGITS)], "S4").view(np.uint8).reshape(-1, 4)
"""The four decimal digits of each number below 10,000."""

Text = NDArray[np.uint8]
"""Text as a matrix of bytes, one line a row; zeros are gaps."""


def escape(token: str) -> str:
    """Return a token as one field of the format. Raises DataError for the empty token."""
    if not token:
        raise DataError("an empty token cannot stand in an ARPA file")
    if token in MARKS:
        return f"\\u{ord('<'):04x}{token[1:]}"
    if not _SPECIAL.search(token):
        return token
    return "".join(
        _ESCAPES.get(character) or (f"\\u{ord(character):04x}" if character.isspace() or character < " " else character)
        for character in token
    )


def unescape(field: str) -> str:
    """Return the token that :func:`escape` wrote as ``field``."""

    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _UNESCAPES.get(found[0], found[0])

    return re.sub(r"\\(?:u([0-9a-f]{4})|.)", plain, field)


def write_arpa(path: Path, model: KneserNey, tokens: Sequence[str]) -> None:
    """Write a Kneser-Ney model; ``tokens`` names each id. A path that ends in ``.gz`` is packed.

    Logarithms have eight decimals. Equal models give equal bytes.
    """
    fields = _Fields([escape(token).encode("utf-8") for token in tokens])
    with replacing(path) as temporary, ExitStack() as stack:
        file: BinaryIO = stack.enter_context(temporary.open("wb"))
        if path.suffix == ".gz":
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0)
            file = cast("BinaryIO", stack.enter_context(packed))
        for block in _blocks(model, fields):
            file.write(block)


class _Fields:
    """The fields of all tokens, as a matrix of bytes where they are not too long."""

    def __init__(self, fields: list[bytes]) -> None:
        self._fields = fields
        self._lengths = np.array([len(field) for field in fields])
        width = max(1, min(int(self._lengths.max()), _MAX_WIDTH))
        self._matrix: Text = (
            np.array([field[:width] for field in fields], f"S{width}").view(np.uint8).reshape(-1, width)
        )

    def columns(self, ids: NDArray[np.int64]) -> Text:
        """Return the fields of some tokens, one a row."""
        width = int(self._lengths[ids].max())
        if width <= _MAX_WIDTH:
            return self._matrix[ids, :width]
        return np.array([self._fields[index] for index in ids], f"S{width}").view(np.uint8).reshape(-1, width)

    def longest(self, ids: NDArray[np.int64]) -> int:
        """Return the bytes of the longest of some tokens."""
        return int(self._lengths[ids].max())


def _blocks(model: KneserNey, fields: _Fields) -> Iterator[bytes]:
    counts = model.counts
    yield b"\\data\\\n"
    for order in range(1, model.order + 1):
        marks = len(MARKS) if order == 1 else 0
        yield f"ngram {order}={len(counts.table(order).keys) + marks}\n".encode()
    for order, (probs, backoffs) in enumerate(model.listed(), start=1):
        yield f"\n\\{order}-grams:\n".encode()
        if order == 1:
            weight = "" if backoffs is None else "\t0"
            yield "".join(f"{NEVER:g}\t{mark}{weight}\n" for mark in MARKS).encode()
        for start in range(0, len(probs), _BLOCK_ROWS):
            rows = np.arange(start, min(start + _BLOCK_ROWS, len(probs)))
            tokens = counts.tokens_of(order, rows)
            weights = None if backoffs is None else backoffs[rows]
            yield from _formatted(probs[rows], tokens, weights, fields)
    yield b"\n\\end\\\n"


def _formatted(probs: Probs, tokens: NDArray[np.int64], weights: Probs | None, fields: _Fields) -> Iterator[bytes]:
    """Yield the lines of some n-grams; ``tokens`` has one a row, ``weights`` are None for the highest order."""
    if len(probs) > 1 and fields.longest(tokens) > _MAX_WIDTH:
        # A matrix as wide as its longest line would be mostly gaps: go on in halves.
        for half in (slice(0, len(probs) // 2), slice(len(probs) // 2, None)):
            yield from _formatted(probs[half], tokens[half], None if weights is None else weights[half], fields)
        return
    size = len(probs)
    columns = [_logarithms(probs)]
    for place, ids in enumerate(tokens.T):
        columns += [_column(b" " if place else b"\t", size), fields.columns(ids)]
    if weights is not None:
        # A weight of one is left out, as the format allows.
        written = np.concatenate([_column(b"\t", size), _logarithms(weights)], axis=1)
        columns.append(written * (weights < 1)[:, None])
    columns.append(_column(b"\n", size))
    yield np.concatenate(columns, axis=1).tobytes().translate(None, b"\0")


def _column(character: bytes, size: int) -> Text:
    return np.full((size, 1), ord(character), np.uint8)


def _logarithms(probs: Probs) -> Text:
    """Return log10 of numbers up to 1, written as ``-DD.DDDDDDDD``, as rows of bytes."""
    scaled = np.rint(-np.log10(np.clip(probs, 10**NEVER, 1.0)) * _DIGITS**2).astype(np.int64)
    whole, decimals = np.divmod(scaled, _DIGITS**2)
    digits = _GROUPS[whole][:, 2:].copy()
    digits[whole < 10, 0] = 0
    high, low = np.divmod(decimals, _DIGITS)
    size = len(probs)
    return np.concatenate([_column(b"-", size), digits, _column(b".", size), _GROUPS[high], _GROUPS[low]], axis=1)
