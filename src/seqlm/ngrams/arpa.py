"""The ARPA format of n-gram models: writing and reading it, plain or packed.

The format lists every n-gram with log10 of its probability and, if it can be a context, log10 of
its backoff weight. White space separates its fields, so a token that contains a space, a tab, a
line end, a return or a NUL has ``\\u`` and four hexadecimal digits in its place. A backslash that
would be read as the beginning of such an escape is escaped too; all others stay. ``<s>`` and
``</s>``, which readers of the format require, are listed with probability zero (-99), because a
stream has neither. A token of the text that is spelt like one of them has its ``<`` escaped.
"""

import gzip
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, exp
from seqlm.core.errors import DataError
from seqlm.core.files import atomic_write, open_unpacked
from seqlm.core.progress import shown
from seqlm.core.threads import imap
from seqlm.ngrams.counts.count_tables import Ids, NgramCounts, Probs, Rows
from seqlm.ngrams.counts.kernels import (
    DECIMALS,
    NEVER,
    Bytes,
    Longs,
    backoff_probs,
    read_lines,
    skip_blank_lines,
    write_lines,
)
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("<s>", "</s>")
_SPECIAL = re.compile(r"[\0\t\n\r ]|\\(?=u[0-9a-f]{4})|\A<(?=/?s>\Z)")
"""What becomes an escape: separators, what would be read as an escape, and the beginning of a
mark."""

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
    return _SPECIAL.sub(lambda match: f"\\u{ord(match[0]):04x}", token)


def unescape(field: str) -> str:
    """Return the token that :func:`escape` wrote as ``field``."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), field)


def write_arpa(path: Path, model: KneserNey, tokens: Sequence[str]) -> None:
    """Write a model; ``tokens`` names each id. A path that ends in ``.gz`` is compressed.

    Logarithms have eight decimals. Equal models give equal bytes.
    """
    # One search in all tokens, because hardly a vocabulary of words has anything to escape.
    is_plain = {"", *MARKS}.isdisjoint(tokens) and not _SPECIAL.search("".join(tokens))
    fields = [field.encode() for field in (tokens if is_plain else map(escape, tokens))]
    letters, starts = np.frombuffer(b"".join(fields), np.uint8), np.cumsum([0, *map(len, fields)])
    with atomic_write(path) as temporary, temporary.open("wb") as plain:
        packed = (
            gzip.GzipFile("", "wb", 6, plain, mtime=0)
            if path.suffix == ".gz"
            else nullcontext(plain)
        )
        with packed as file:
            for part in _parts(model, letters, starts):
                file.write(part)


def _parts(model: KneserNey, letters: Bytes, starts: Longs) -> Iterator[bytes | memoryview]:
    """Yield the parts of the file; several threads make the lists of n-grams, block by block.

    The field of token t are the ``letters`` from ``starts[t]`` to ``starts[t + 1]``.
    """
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
        blocks = (
            slice(start, min(start + _BLOCK_ROWS, size)) for start in range(0, size, _BLOCK_ROWS)
        )
        yield from imap(partial(_lines, model, letters, starts, order, below, probs), blocks)
        below = probs
    yield b"\n\\end\\\n"


def _lines(
    model: KneserNey,
    letters: Bytes,
    starts: Longs,
    order: int,
    below: Probs,
    all_probs: Probs,
    rows: slice,
) -> memoryview:
    """Return the lines of some n-grams of an order. Below the highest, their probabilities go to
    ``all_probs`` too.

    ``below`` has the probabilities of all n-grams of the order below.
    """
    probs = model.probs_of_rows(order, rows, below)
    if order < model.order:
        all_probs[rows] = probs
    tokens = model.counts.table(order).tokens_of(np.arange(rows.start, rows.stop))
    weights = model.backoff_weights(order, rows)
    num_letters = int((starts[tokens + 1] - starts[tokens]).sum())
    text = np.empty(
        num_letters + len(probs) * (2 * _BYTES_OF_NUMBER + order + len("\t\n")), np.uint8
    )
    end = write_lines(probs, tokens, weights, letters, starts, text)
    return text[:end].data


_LOG_UNKNOWN = -100.0
"""Of an unknown word if the file does not list ``<unk>``, as in KenLM."""
_MAX_LINES_OF_HEAD = 1000
"""Lines up to the header: comments, and what other programs write there."""
_BLOCK_BYTES, _ENTRIES_AT_ONCE = 1 << 23, 1 << 18
"""What is read, and turned into numbers, at once."""
_ONCE = np.uint8(1)
_SIZE = re.compile(r"ngram\s+(\d{1,9})\s*=\s*(\d{1,18})")


@dataclass(frozen=True, eq=False)
class ArpaModel(NGramModel):
    """A model that was read, over tokens of its own. ARPA files hold no counts; every count is 1.

    An n-gram that is not listed has the weight of its context times the probability of the n-gram
    without its first token.
    """

    smoothing = "ARPA"
    backoff = "lower"

    counts: NgramCounts
    order: int
    """The highest order that has n-grams."""
    listed: list[Probs]
    """The probabilities of the n-grams of order n, at index n - 1."""
    backoffs: list[Probs]
    """Their weights as contexts."""
    file: str
    """The name of its file."""
    tokens: list[str]
    """Its tokens, ``<unk>`` first. No text has those of the sentence marks: "" begins a sentence,
    and a line end ends it."""
    marks: tuple[int, int] | None
    """The tokens that begin and end a sentence; None if it does not predict the end of one."""
    warnings: list[str]
    """What a user should know about its probabilities."""

    @property
    def unigram(self) -> Probs:
        """The probability of each token without any context."""
        return self.listed[0]

    def probs(self, ids: Ids, positions: Rows | None = None) -> Probs:
        positions = np.arange(len(ids)) if positions is None else positions
        probs, rows = np.empty(max(len(ids) - 1, 0)), np.empty((2, self.order), np.int64)
        tokens = ids.astype(np.int64, copy=False)
        self._refuse_above_1(backoff_probs(tokens, positions, *self._orders, rows, probs))
        return probs

    @cached_property
    def _orders(self) -> list[tuple[NDArray[Any], ...]]:
        """The keys, probabilities and weights of all orders."""
        lists = [table.keys for table in self.counts.tables], self.listed, self.backoffs
        return [tuple(arrays[: self.order]) for arrays in lists]

    def terms(self, n: int, rows: Rows | slice, contexts: Rows | slice) -> tuple[Probs, Probs]:
        """Return the probabilities of some n-grams of order n, and the weights of their
        contexts."""
        return self.listed[n - 1][rows], self.backoffs[n - 2][contexts]

    def combine(self, is_seen: NDArray[np.bool_], shares: Probs, backed_off: Probs) -> Probs:
        """Return the probabilities of n-grams that are listed, and what the others back off to."""
        probs = np.where(is_seen, shares, backed_off)
        self._refuse_above_1(probs.max())
        return probs

    def _refuse_above_1(self, largest: float) -> None:
        if largest > _MAX_PROB:
            raise DataError(
                f"{self.file}: its backoff weights give an n-gram the probability {largest:.3g}, "
                "more than 1: make the file again"
            )


def read_arpa(path: Path) -> ArpaModel:
    """Return the model in an ARPA file, plain or packed with gzip, bzip2 or xz.

    Raises DataError, with the line, if the file is truncated, binary, or does not contain what its
    header says.
    """
    with open_unpacked(path, str(path)) as file:
        lines = _Lines(file, path)
        try:
            return _read_model(lines, shown(Path(path.name)))
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: binary, not an ARPA file") from error


class _Lines:
    """The lines of a file, of which one block is in memory."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self.path = file, path
        self.block = b""
        self._position = self._num_lines_before = self._line_start = 0

    def _has_more(self) -> bool:
        """Read the next block of whole lines after the end of one; return whether there is one."""
        if self._position == len(self.block):
            self._num_lines_before += self.block.count(b"\n")
            self.block, self._position = self._file.read(_BLOCK_BYTES) + self._file.readline(), 0
        return bool(self.block)

    def next(self) -> str:
        """Return the next line that is not blank, and "" at the end."""
        while self._has_more():
            start = skip_blank_lines(np.frombuffer(self.block, np.uint8), self._position)
            end = self.block.find(b"\n", start)
            self._line_start, self._position = start, end + 1 if end >= 0 else len(self.block)
            if line := self.block[start : self._position].strip(b" \t\r\n\0"):
                return line.decode(errors="replace")
        return ""

    def require(self, line: str) -> None:
        """Read the next line. Raises DataError if it is another one."""
        if (other := self.next()) != line:
            self.fail(f"expected {line}" if other else "ends before \\end\\: truncated")

    def ngrams(self, order: int, size: int) -> Iterator[tuple[NDArray[np.int64], Floats, Rows]]:
        """Read the n-grams of an order, of which there are ``size``, some at a time.

        Yields the hashes of their words, shape ``(rows, order)``, two logarithms for each, and
        where in the block its first word begins and ends, both of shape ``(rows, 2)``.
        """
        missing = size
        while missing:
            room, more = min(missing, _ENTRIES_AT_ONCE), self._has_more()
            logs, spans = np.empty((room, 2)), np.empty((room, 2), np.int64)
            words = np.empty((room, order), np.int64)
            num_read, self._position, is_broken = read_lines(
                np.frombuffer(self.block, np.uint8), self._position, logs, words, spans
            )
            logs, words, spans = logs[:num_read], words[:num_read], spans[:num_read]
            if is_broken:
                self.fail(f"expected a number, {order} words and perhaps a number", self._position)
            if not more or (not num_read and self._position < len(self.block)):
                self.fail(f"{size - missing} {order}-grams where the header says {size}")
            is_wrong = ~((logs[:, 0] <= 0) & (np.abs(logs[:, 1]) <= _MAX_LOGARITHM))
            self.refuse(
                "expected the logarithms of a probability and a backoff weight", is_wrong, spans
            )
            yield words, logs, spans
            missing -= num_read

    def refuse(self, problem: str, is_wrong: NDArray[np.bool_], spans: Rows) -> None:
        """Raise DataError if one of some n-grams is wrong, with the line of the first."""
        if is_wrong.any():
            self.fail(problem, int(spans[is_wrong.argmax(), 0]))

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise DataError with the line at a position of the block; by default the line read
        last."""
        before = self.block.count(b"\n", 0, self._line_start if position is None else position)
        raise DataError(f"{self.path}: line {self._num_lines_before + before + 1}: {problem}")


def _read_sizes(lines: _Lines) -> list[int]:
    """Return the number of n-grams of each order."""
    head = (lines.next().removeprefix("\ufeff") for _ in range(_MAX_LINES_OF_HEAD))
    # This reads no further than it finds.
    if "\\data\\" not in head:
        lines.fail("no \\data\\: not an ARPA file")
    sizes: list[int] = []
    while (line := lines.next()) != "\\1-grams:" or not sizes:
        size = _SIZE.fullmatch(line)
        if not size or int(size[1]) != len(sizes) + 1:
            lines.fail("expected ngram N=COUNT, orders in turn")
        sizes.append(int(size[2]))
    return sizes


def _read_model(lines: _Lines, name: str) -> ArpaModel:
    sizes = _read_sizes(lines)
    model, index = _read_words(lines, sizes[0], name)
    for order, size in enumerate(sizes[1:], start=2):
        lines.require(f"\\{order}-grams:")
        keys_of = partial(_keys, lines, index, model.counts)
        # No n-gram has a context as long as the longest ones.
        columns = _read_table(lines, order, size, 1 if order == len(sizes) else 2, keys_of)
        if (columns[0][1:] <= columns[0][:-1]).any():
            ranked = np.argsort(columns[0])
            columns = [column[ranked] for column in columns]
        keys, probs, *weights = columns
        model.counts.append(keys, np.broadcast_to(_ONCE, size))
        if len(same := np.flatnonzero(keys[1:] == keys[:-1])):
            ngram = model.counts.table(order).tokens_of(same[:1])[0].tolist()
            twice = " ".join(model.tokens[token] for token in ngram)
            raise DataError(f"{lines.path}: {twice!r} is listed twice")
        model.listed.append(probs)
        model.backoffs.extend(weights)
    lines.require("\\end\\")
    # Orders without n-grams are not asked.
    return replace(model, order=max(n for n, size in enumerate(sizes, start=1) if size or n == 1))


def _read_words(lines: _Lines, size: int, name: str) -> "tuple[ArpaModel, pd.Index]":
    """Return the model of order 1, and an index from the hash of a word to its token."""
    import pandas as pd

    words: list[str] = []

    def keys_of(hashes: Longs, spans: Rows) -> Longs:
        words.extend(lines.block[word].decode() for word in map(slice, *spans.T.tolist()))
        return hashes[:, 0]

    columns, warnings = _read_table(lines, 1, size, 2, keys_of), []
    if UNKNOWN not in words:
        words.append(UNKNOWN)
        missing = 0, 10**_LOG_UNKNOWN, 1
        columns = [np.append(*pair) for pair in zip(columns, missing, strict=True)]
        warnings.append(f"{name}: lists no {UNKNOWN}: log10 p of unknown words is {_LOG_UNKNOWN:g}")
    # It comes first, as in every vocabulary; the others keep their order.
    unknown = words.index(UNKNOWN)
    words.insert(0, words.pop(unknown))
    hashes, probs, weights = (
        np.r_[column[unknown], np.delete(column, unknown)] for column in columns
    )
    index, ordered = pd.Index(hashes), np.sort(hashes)
    if (ordered[1:] == ordered[:-1]).any():
        raise DataError(f"{lines.path}: {words[index.duplicated().argmax()]!r} is listed twice")
    begin, end = (words.index(mark) if mark in words else None for mark in MARKS)
    if begin is not None:  # it never follows, although KenLM lists it with probability 1
        probs[begin] = 0
    if abs((total := probs.sum()) - 1) > _TOLERANCE_OF_SUM:
        warnings.append(
            f"{name}: the probabilities of the 1-grams sum to {total:.3g}, not to 1: do not "
            "trust its scores"
        )
    tokens = [unescape(word) if "\\" in word else word for word in words]
    marks = None
    if begin is not None and end is not None:
        tokens[begin] = tokens[end] = ""
        if probs[end] > 10**NEVER:
            marks, tokens[end] = (begin, end), "\n"
    counts = NgramCounts([(np.arange(len(words)), np.broadcast_to(_ONCE, len(words)))])
    return ArpaModel(counts, 1, [probs], [weights], name, tokens, marks, warnings), index


def _read_table(
    lines: _Lines, order: int, size: int, num_logs: int, keys_of: Callable[[Longs, Rows], Longs]
) -> list[NDArray[Any]]:
    """Return the keys of the n-grams of an order, their probabilities and, if ``num_logs`` is 2,
    their weights as contexts.

    ``keys_of`` makes keys of the hashes of words, and where the n-grams are.
    """
    blocks = [(np.empty(0, np.int64), *np.empty((num_logs, 0)))]
    for words, logs, spans in lines.ngrams(order, size):
        blocks.append((keys_of(words, spans), *exp(logs[:, :num_logs].T * math.log(10))))
    return [np.concatenate(columns) for columns in zip(*blocks, strict=True)]


def _keys(
    lines: _Lines, index: "pd.Index", counts: NgramCounts, words: Longs, spans: Rows
) -> Longs:
    """Return the keys of n-grams of the order above the tables."""
    ids = index.get_indexer(words.ravel()).reshape(words.shape).astype(np.int64)
    is_unlisted = (ids < 0).any(axis=1)
    lines.refuse("a word of this n-gram is not among the 1-grams", is_unlisted, spans)
    prefixes = ids[:, 0]
    for n in range(2, ids.shape[1]):
        prefixes = counts.table(n).find(prefixes, ids[:, n - 1])
    order = ids.shape[1]
    lines.refuse(f"a {order}-gram whose beginning is not listed", prefixes < 0, spans)
    keys: Longs = prefixes * counts.vocab_size + ids[:, -1]
    return keys
