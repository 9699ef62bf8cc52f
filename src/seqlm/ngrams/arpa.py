"""The ARPA format of n-gram models: writing and reading it, plain or packed with gzip.

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
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, MachineError
from seqlm.core.files import open_packed, replacing
from seqlm.core.progress import shown
from seqlm.core.threads import imap
from seqlm.ngrams.backoff import BackoffTables
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs, Rows
from seqlm.ngrams.counts.kernels import DECIMALS, NEVER, write_lines

MARKS = ("<s>", "</s>")
_ESCAPES = {"\\": "\\\\", " ": "\\s", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SPECIAL = re.compile(r"[\\\s\x00-\x1f]")
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}

_BLOCK_ROWS = 1 << 16
"""N-grams that are written at once."""
_MAX_LOGARITHM = 300
"""Of a backoff weight, in absolute value: 10 to the power of more would be infinite."""
_MAX_PROB, _TOLERANCE_OF_SUM = 1.001, 0.01
"""Some programs write few decimals, so products and sums may be a little too large."""
_BYTES_OF_NUMBER = len("-99.") + DECIMALS


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


class Listable(Protocol):
    """A model whose n-grams can be listed with probabilities and weights."""

    @property
    def counts(self) -> NgramCounts:
        """The n-grams of each order."""
        ...

    @property
    def order(self) -> int:
        """The highest order that is listed."""
        ...

    def probs_of_rows(self, n: int, rows: slice, below: Probs, /) -> Probs:
        """Return p of some n-grams of order n; ``below`` has those of all n-grams of order n - 1."""
        ...

    def backoff_weights(self, n: int, rows: slice, /) -> Probs:
        """Return the weights of some n-grams of order n as contexts; none at the highest order."""
        ...


def write_arpa(path: Path, model: Listable, tokens: Sequence[str]) -> None:
    """Write a model; ``tokens`` names each id. A path that ends in ``.gz`` is compressed.

    Logarithms have eight decimals. Equal models give equal bytes.
    """
    # One search in all tokens, because hardly a vocabulary of words has anything to escape.
    is_plain = {"", *MARKS}.isdisjoint(tokens) and not _SPECIAL.search("".join(tokens))
    fields = _Fields([field.encode() for field in (tokens if is_plain else map(escape, tokens))])
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


def _parts(model: Listable, fields: _Fields) -> Iterator[bytes | memoryview]:
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


def _lines(model: Listable, fields: _Fields, order: int, below: Probs, all_probs: Probs, rows: slice) -> memoryview:
    """Return the lines of some n-grams of an order. Below the highest, their probabilities go to ``all_probs`` too.

    ``below`` has the probabilities of all n-grams of the order below.
    """
    probs = model.probs_of_rows(order, rows, below)
    if order < model.order:
        all_probs[rows] = probs
    tokens = model.counts.table(order).tokens_of(np.arange(rows.start, rows.stop))
    weights = model.backoff_weights(order, rows)
    num_bytes = int(fields.lengths[tokens].sum()) + len(probs) * (2 * _BYTES_OF_NUMBER + order + len("\t\n"))
    text = np.empty(num_bytes, np.uint8)
    end = write_lines(probs, tokens, weights, fields.letters, fields.starts, text)
    return text[:end].data


_SEPARATORS = " \t\r\v\f"
"""What separates fields; another program may write tokens that contain other white space of Unicode."""
_SEPARATED = re.compile(f"[{_SEPARATORS}]+")


@dataclass(frozen=True, eq=False)
class ArpaModel(BackoffTables):
    """A model that was read, over tokens of its own. The counts are not in the format and are 1."""

    name: str
    """The name of its file."""
    tokens: list[str]

    @property
    def warnings(self) -> list[str]:
        """What a user should know about the model's probabilities."""
        if abs((total := math.fsum(self.listed[0])) - 1) <= _TOLERANCE_OF_SUM:
            return []
        return [f"{self.name}: the probabilities of the 1-grams sum to {total:.3g}, not to 1: do not trust its scores"]

    def probs(self, ids: Ids, places: Rows | None = None) -> Probs:
        """Return p of tokens 2..N of a stream, each given those before it.

        ``places``: the place of each token in its text, if several texts follow one another. Raises DataError, which
        names the n-gram, if one is larger than 1.
        """
        result = super().probs(ids, places)
        if len(result) and result[worst := int(result.argmax())] > _MAX_PROB:
            self._fail(ids[: worst + 2], result[worst])
        return result

    def next_distribution(self, context: Ids) -> Probs:
        """Return p of every token after ``context``. Raises DataError as :meth:`probs` does."""
        result = super().next_distribution(context)
        if result[worst := int(result.argmax())] > _MAX_PROB:
            self._fail(np.append(context, worst), result[worst])
        return result

    def _fail(self, ids: Ids, prob: float) -> NoReturn:
        ngram = " ".join(escape(self.tokens[index]) for index in ids[-self.counts.max_order :])
        raise DataError(
            f"{self.name}: the n-gram {ngram!r} has the probability {prob:.3g}, more than 1, by its backoff weights: "
            "make the file again"
        )


def read_arpa(path: Path) -> ArpaModel:
    """Return the model in an ARPA file, plain or packed with gzip.

    Raises DataError, with the line, if the file is truncated, binary, or does not contain what its header says.
    """
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._line_number = 0
        self._lines = enumerate(_text_of(path).split("\n"), start=1)
        self._ids: dict[str, int] = {}
        """The id of each field, in the order in which the 1-grams list them."""

    def read(self) -> ArpaModel:
        sizes, line = self._header()
        arrays: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        listed: list[NDArray[np.floating]] = []
        backoffs: list[NDArray[np.floating]] = []
        rows_below: dict[tuple[int, ...], int] = {(): 0}
        for order, size in enumerate(sizes, start=1):
            if line != f"\\{order}-grams:":
                self._fail(f"expected \\{order}-grams:")
            entries: dict[tuple[int, ...], tuple[float, float]] = {}
            while not (line := self._next_line()).startswith("\\"):
                ngram, logs = self._entry(line, order)
                if ngram in entries:
                    self._fail(f"this {order}-gram is listed twice")
                if ngram[:-1] not in rows_below:
                    self._fail(f"a {order}-gram whose beginning is not listed")
                entries[ngram] = logs
            if len(entries) != size:
                self._fail(f"{len(entries)} {order}-grams where the header says {size}")
            # Sorted n-grams have sorted keys, because the rows of their beginnings are sorted too.
            ngrams = sorted(entries)
            keys = np.array([rows_below[ngram[:-1]] * sizes[0] + ngram[-1] for ngram in ngrams], np.int64)
            arrays.append((keys, np.ones(size, np.int64)))
            for column, found in enumerate((listed, backoffs)):
                found.append(np.array([10.0 ** entries[ngram][column] for ngram in ngrams]))
            rows_below = {ngram: row for row, ngram in enumerate(ngrams)}
        if line != "\\end\\":
            self._fail("expected \\end\\")
        for number, line in self._lines:
            if line.strip(_SEPARATORS):
                self._line_number = number
                self._fail("text after \\end\\")
        if (begin := self._ids.get(MARKS[0])) is not None:
            listed[0][begin] = 10.0**NEVER  # it never follows, although KenLM lists it with probability 1
        tokens = [unescape(field) for field in self._ids]
        return ArpaModel(NgramCounts(arrays), listed, backoffs, shown(Path(self._path.name)), tokens)

    def _header(self) -> tuple[list[int], str]:
        """Return the number of n-grams of each order, and the line that follows."""
        if self._next_line() != "\\data\\":
            self._fail("expected \\data\\: not an ARPA file")
        sizes: list[int] = []
        while not (line := self._next_line()).startswith("\\"):
            found = re.fullmatch(r"ngram (\d{1,9})\s*=\s*(\d{1,18})", line)
            if not found or int(found[1]) != len(sizes) + 1:
                self._fail("expected ngram N=COUNT, orders in turn")
            sizes.append(int(found[2]))
        if not sizes:
            self._fail("a header without orders")
        return sizes, line

    def _entry(self, line: str, order: int) -> tuple[tuple[int, ...], tuple[float, float]]:
        """Return an n-gram, and the logarithms of its probability and of its backoff weight."""
        number, *fields = _SEPARATED.split(line)
        if len(fields) not in (order, order + 1):
            self._fail(f"expected a number, {order} words and perhaps a number")
        try:
            log_prob, log_backoff = float(number), float(fields[order]) if len(fields) > order else 0.0
        except ValueError:
            self._fail("expected a number")
        if not (log_prob <= 0 and abs(log_backoff) <= _MAX_LOGARITHM):
            self._fail("expected the logarithms of a probability and of a backoff weight")
        ngram = fields[:order]
        if order == 1:
            self._ids.setdefault(ngram[0], len(self._ids))
        if missing := [field for field in ngram if field not in self._ids]:
            self._fail(f"the word {missing[0]!r} is not among the 1-grams")
        return tuple(self._ids[field] for field in ngram), (log_prob, log_backoff)

    def _next_line(self) -> str:
        """Return the next line that is not blank."""
        for number, line in self._lines:
            self._line_number = number
            if stripped := line.strip(_SEPARATORS):
                return stripped
        return self._fail("ends before \\end\\: truncated")

    def _fail(self, what: str) -> NoReturn:
        raise DataError(f"{self._path}: line {self._line_number}: {what}")


def _text_of(path: Path) -> str:
    try:
        with open_packed(path) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: binary, not an ARPA file") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: not a complete gzip file: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except OSError as error:
        raise MachineError(f"{path}: cannot be read: {error.strerror}") from error
