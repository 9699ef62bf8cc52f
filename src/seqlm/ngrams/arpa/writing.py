"""The ARPA format of n-gram models, and writing it, plain or ``.gz``.

The format lists every n-gram with log10 of its probability and, if it can be a context, log10 of its backoff weight.
White space separates its fields, so tokens that contain some are written with escapes: ``\\s`` for a space, ``\\n`` for
a line end, ``\\t`` for a tab, ``\\r`` for a return, ``\\\\`` for a backslash, ``\\u`` and four hexadecimal digits for
other white space and control characters. ``<s>`` and ``</s>``, which readers of the format require, are listed with
probability zero (-99), because a stream has neither. A token of the text that is spelt like one of them has its ``<``
escaped.
"""

import gzip
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.core.errors import DataError
from seqlm.core.files import replacing
from seqlm.core.threads import imap
from seqlm.ngrams.counts.count_tables import Probs
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
_UNITS_OF_LOG = -(10**_DECIMALS) / math.log(10)
_NO_WEIGHT = -1


def escape(token: str) -> str:
    """Return a token as one field of the format. Raises DataError for the empty token."""
    if not token:
        raise DataError("an empty token cannot be written to an ARPA file")
    if token in MARKS:
        return _hexadecimal(token[0]) + token[1:]
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0]) or _hexadecimal(found[0]), token)


def _hexadecimal(character: str) -> str:
    return f"\\u{ord(character):04x}"


def unescape(field: str) -> str:
    """Return the token that :func:`escape` wrote as ``field``."""

    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _UNESCAPES.get(found[0], found[0])

    return re.sub(r"\\(?:u([0-9a-f]{4})|.)", plain, field)


def write_arpa(path: Path, model: KneserNey, tokens: Sequence[str]) -> None:
    """Write a Kneser-Ney model; ``tokens`` names each id. A path that ends in ``.gz`` is compressed.

    Logarithms have eight decimals. Equal models give equal bytes.
    """
    fields = _Fields([escape(token).encode("utf-8") for token in tokens])
    with replacing(path) as temporary, ExitStack() as stack:
        file: BinaryIO = stack.enter_context(temporary.open("wb"))
        if path.suffix == ".gz":
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0)
            file = cast("BinaryIO", stack.enter_context(packed))
        for part in _parts(model, fields):
            file.write(part)


class _Fields:
    """The fields of all tokens in a row."""

    def __init__(self, fields: list[bytes]) -> None:
        self.letters = np.frombuffer(b"".join(fields), np.uint8)
        self.starts = np.cumsum([0, *map(len, fields)])
        """Where in the letters each field begins, and where the last one ends."""
        self.lengths = np.diff(self.starts)


def _parts(model: KneserNey, fields: _Fields) -> Iterator[bytes | memoryview]:
    """Yield the parts of the file; several threads make the lists of n-grams, block by block."""
    sizes = [len(table) for table in model.counts.tables[: model.order]]
    listed = [sizes[0] + len(MARKS), *sizes[1:]]
    header = "".join(f"ngram {order}={size}\n" for order, size in enumerate(listed, start=1))
    yield f"\\data\\\n{header}".encode()
    below = np.empty(0)
    for order, size in enumerate(sizes, start=1):
        yield f"\n\\{order}-grams:\n".encode()
        if order == 1:
            weight = "\t0" if model.order > 1 else ""
            yield "".join(f"{NEVER:g}\t{mark}{weight}\n" for mark in MARKS).encode()
        probs = np.empty(size if order < model.order else 0)  # the next order needs them
        blocks = (slice(start, min(start + _BLOCK_ROWS, size)) for start in range(0, size, _BLOCK_ROWS))
        yield from imap(partial(_lines, model, fields, order, below, probs), blocks)
        below = probs
    yield b"\n\\end\\\n"


def _lines(model: KneserNey, fields: _Fields, order: int, below: Probs, all_probs: Probs, rows: slice) -> memoryview:
    """Return the lines of some n-grams of an order. Below the highest, their probabilities go to ``all_probs`` too.

    ``below`` has the probabilities of all n-grams of the order below.
    """
    from seqlm.ngrams.counts.kernels import write_lines

    probs = model.probs_of_rows(order, rows, below)
    if order < model.order:
        all_probs[rows] = probs
    tokens = model.counts.table(order).tokens_of(np.arange(rows.start, rows.stop))
    weights = model.backoff_weights(order, rows)
    logs = np.full(len(probs), _NO_WEIGHT) if weights is None else _logarithms(weights)
    if weights is not None:
        logs[weights >= 1] = _NO_WEIGHT  # the format lets a weight of one be left out
    num_bytes = int(fields.lengths[tokens].sum()) + len(probs) * (2 * _BYTES_OF_NUMBER + order + len("\t\n"))
    text = np.empty(num_bytes, np.uint8)
    end = write_lines(_logarithms(probs), tokens, logs, fields.letters, fields.starts, text)
    return text[:end].data


def _logarithms(probs: Probs) -> NDArray[np.int64]:
    """Return -log10 of numbers up to 1, as multiples of the last decimal that is written."""
    found: NDArray[np.int64] = np.rint(log(np.clip(probs, 10**NEVER, 1.0)) * _UNITS_OF_LOG).astype(np.int64)
    return found
