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
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import replacing
from seqlm.ngrams.counts.count_tables import Counts, Probs, Rows
from seqlm.ngrams.counts.parallel import imap
from seqlm.ngrams.models.kneser_ney import KneserNey

NEVER = -99.0
MARKS = ("<s>", "</s>")
_ESCAPES = {"\\": "\\\\", " ": "\\s", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SPECIAL = re.compile(r"[\\\s\x00-\x1f]")
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}

_BLOCK_ROWS = 1 << 16
"""N-grams that are written at once."""
_DECIMALS = 8
_BYTES_OF_NUMBER = len("-99.") + _DECIMALS
_NO_WEIGHT = -1


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
        for line in _header(model):
            file.write(line)
        for lines in _lists(model, fields):
            file.write(lines)
        file.write(b"\n\\end\\\n")


class _Fields:
    """The fields of all tokens, one behind the other."""

    def __init__(self, fields: list[bytes]) -> None:
        self.letters = np.frombuffer(b"".join(fields), np.uint8)
        self.starts = np.cumsum([0, *map(len, fields)])
        """Where in the letters each field starts, and where the last one ends."""

    def lengths(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of the fields of some tokens."""
        found: NDArray[np.int64] = self.starts[ids + 1] - self.starts[ids]
        return found


def _header(model: KneserNey) -> Iterator[bytes]:
    yield b"\\data\\\n"
    for order in range(1, model.order + 1):
        marks = len(MARKS) if order == 1 else 0
        yield f"ngram {order}={len(model.counts.table(order)) + marks}\n".encode()


def _lists(model: KneserNey, fields: _Fields) -> Iterator[bytes | memoryview]:
    """Yield the lists of n-grams of all orders, in stretches that are made side by side."""
    below = np.empty(0)
    for order in range(1, model.order + 1):
        num_rows = len(model.counts.table(order))
        probs = np.empty(num_rows) if order < model.order else None
        yield _heading(order, order < model.order)
        starts = range(0, num_rows, _BLOCK_ROWS)
        stretches = (slice(start, min(start + _BLOCK_ROWS, num_rows)) for start in starts)
        yield from imap(partial(_stretch, model, order, rows, below, probs, fields) for rows in stretches)
        if probs is not None:
            below = probs


def _stretch(
    model: KneserNey, order: int, rows: slice, below: Probs, probs: Probs | None, fields: _Fields
) -> memoryview:
    """Return the lines of some n-grams; their probabilities go to ``probs`` too, for the next order."""
    found = model.probs_of_rows(order, rows, below)
    if probs is not None:
        probs[rows] = found
    weights = model.weights_of_rows(order, rows)
    return _lines(model.counts, order, np.arange(rows.start, rows.stop), found, weights, fields)


def _heading(order: int, has_weights: bool) -> bytes:
    weight = "\t0" if has_weights else ""
    marks = "".join(f"{NEVER:g}\t{mark}{weight}\n" for mark in MARKS) if order == 1 else ""
    return f"\n\\{order}-grams:\n{marks}".encode()


def _lines(counts: Counts, order: int, rows: Rows, probs: Probs, weights: Probs | None, fields: _Fields) -> memoryview:
    """Return the lines of some n-grams; ``weights`` are None for the highest order."""
    from seqlm.ngrams.counts.kernels import write_lines

    tokens = counts.tokens_of(order, rows)
    written = np.full(len(probs), _NO_WEIGHT) if weights is None else _logarithms(weights)
    if weights is not None:
        written[weights >= 1] = _NO_WEIGHT  # of one, which the format allows
    most = int(fields.lengths(tokens).sum()) + len(probs) * (2 * _BYTES_OF_NUMBER + tokens.shape[1] + len("\t\n"))
    text = np.empty(most, np.uint8)
    end = write_lines(_logarithms(probs), tokens, written, fields.letters, fields.starts, text)
    return text[:end].data


def _logarithms(probs: Probs) -> NDArray[np.int64]:
    """Return -log10 of numbers up to 1, as multiples of the last decimal that is written."""
    found: NDArray[np.int64] = np.rint(-np.log10(np.clip(probs, 10**NEVER, 1.0)) * 10**_DECIMALS).astype(np.int64)
    return found
