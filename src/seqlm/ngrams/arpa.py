"""The ARPA format of n-gram models: writing and reading it, plain or packed with gzip.

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
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp
from seqlm.core.errors import DataError
from seqlm.core.files import atomic_write, open_maybe_gzipped
from seqlm.core.progress import shown
from seqlm.core.threads import imap
from seqlm.ngrams.counts.count_tables import NgramCounts, Probs, Rows
from seqlm.ngrams.counts.kernels import DECIMALS, NEVER, Bytes, Longs, read_lines, write_lines
from seqlm.ngrams.models.base import NGramModel
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import UNKNOWN

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
    return _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", token)


def unescape(field: str) -> str:
    """Return the token that :func:`escape` wrote as ``field``."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), field)


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


_SEPARATORS = b" \t\r\0"
_ROWS_AT_ONCE = 1 << 20
"""Lines that are read at once."""
_SHORTEST_LINE = len("0 a\n")


@dataclass(frozen=True, eq=False)
class ArpaModel(NGramModel):
    """A model that was read, over tokens of its own. The counts are not in the format and are 1.

    An n-gram that is not listed has the weight of its context times the probability of the n-gram
    without its first token.
    """

    smoothing = "ARPA"
    backoff = "lower"

    counts: NgramCounts
    order: int
    listed: list[Probs]
    """The probabilities of the n-grams of order n, at index n - 1."""
    backoffs: list[Probs]
    """Their weights as contexts, below the highest order."""
    file: str
    """The name of its file."""
    tokens: list[str]
    """Its tokens, ``<unk>`` first; it has probability 0 if the file does not list it."""

    @property
    def warnings(self) -> list[str]:
        """What a user should know about the model's probabilities."""
        if abs((total := math.fsum(self.unigram)) - 1) <= _TOLERANCE_OF_SUM:
            return []
        return [
            f"{self.file}: the probabilities of the 1-grams sum to {total:.3g}, not to 1: do not "
            "trust its scores"
        ]

    @property
    def unigram(self) -> Probs:
        """The probability of each token without any context."""
        return self.listed[0]

    def interpolation(
        self, n: int, rows: Rows | slice, contexts: Rows | slice
    ) -> tuple[Probs, Probs]:
        """Return the probabilities of some n-grams of order n, and the weights of their
        contexts."""
        return self.listed[n - 1][rows], self.backoffs[n - 2][contexts]

    def mixed(self, is_seen: NDArray[np.bool_], shares: Probs, backed_off: Probs) -> Probs:
        """Return the probabilities of n-grams that are listed, and what the others back off to.

        Raises DataError for one above 1.
        """
        probs = np.where(is_seen, shares, backed_off)
        if (largest := probs.max(initial=0)) > _MAX_PROB:
            raise DataError(
                f"{self.file}: its backoff weights give an n-gram the probability {largest:.3g}, "
                "more than 1: "
                "make the file again"
            )
        return probs


def read_arpa(path: Path) -> ArpaModel:
    """Return the model in an ARPA file, plain or packed with gzip.

    Raises DataError, with the line, if the file is truncated, binary, or does not contain what its
    header says.
    """
    try:
        return _Reader(path).read()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: binary, not an ARPA file") from error


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        with open_maybe_gzipped(path, str(path)) as file:
            self._text = file.read().removeprefix(BOM_UTF8)
        self._position = 0
        """The byte after what was read."""

    def read(self) -> ArpaModel:
        import pandas as pd

        sizes, counts, tokens, listed, backoffs = (
            self._header(),
            NgramCounts([]),
            list[str](),
            [],
            [],
        )
        for order, size in enumerate(sizes, start=1):
            self._expect(f"\\{order}-grams:")
            keys, logs = np.empty(size, np.int64), np.empty((2, size))
            for rows, words, logs[:, rows], spans in self._chunks(order, size):
                keys[rows] = (
                    words[:, 0].view(np.int64) if order == 1 else self._keys(words, spans, counts)
                )
                if order == 1:
                    tokens += [
                        unescape(self._text[begin:end].decode()) for begin, end in spans.tolist()
                    ]
            ranked = np.argsort(keys)
            same = ranked[1:][np.diff(keys[ranked]) == 0]
            if order == 1:
                if UNKNOWN not in tokens:  # it has probability 0
                    tokens.append(UNKNOWN)
                    keys, logs = np.append(keys, 0), np.append(logs, [[-np.inf], [0]], axis=1)
                # It comes first, as in every vocabulary; the others keep their order.
                unknown = tokens.index(UNKNOWN)
                ranked = np.r_[unknown, np.delete(np.arange(len(tokens)), unknown)]
                tokens = [tokens[place] for place in ranked]
                self._index, keys[ranked] = pd.Index(keys[ranked]), np.arange(len(tokens))
            counts.append(keys[ranked], np.broadcast_to(np.uint8(1), len(ranked)))
            if len(same):
                twice = counts.table(order).tokens_of(np.flatnonzero(ranked == same[0]))[0]
                raise DataError(
                    f"{self._path}: {' '.join(tokens[token] for token in twice)!r} is listed twice"
                )
            listed.append(exp(logs[0][ranked] * math.log(10)))
            if order < len(sizes):  # no context is as long as the longest n-grams
                backoffs.append(exp(logs[1][ranked] * math.log(10)))
        self._expect("\\end\\")
        if MARKS[0] in tokens:  # it never follows, although KenLM lists it with probability 1
            listed[0][tokens.index(MARKS[0])] = 0
        return ArpaModel(counts, len(sizes), listed, backoffs, shown(Path(self._path.name)), tokens)

    def _header(self) -> list[int]:
        """Return the number of n-grams of each order."""
        self._expect("\\data\\", ": not an ARPA file")
        sizes: list[int] = []
        while not (line := self._next_line()).startswith("\\") or not sizes:
            found = re.fullmatch(r"ngram (\d{1,9})\s*=\s*(\d{1,18})", line)
            if not found or int(found[1]) != len(sizes) + 1:
                self._fail("expected ngram N=COUNT, orders in turn", self._line)
            sizes.append(int(found[2]))
            if sizes[-1] * _SHORTEST_LINE > len(self._text):
                self._fail("more n-grams than the file has room for", self._line)
        self._position = self._line
        return sizes

    def _chunks(
        self, order: int, size: int
    ) -> Iterator[tuple[slice, NDArray[np.uint64], Probs, Rows]]:
        """Read the lines of a section in chunks.

        Yields which rows they are, the hashes of their words, their logarithms, shape ``(2,
        rows)``, and where their first words begin and end.
        """
        text, done = np.frombuffer(self._text, np.uint8), 0
        while done < size:
            room = min(size - done, _ROWS_AT_ONCE)
            logs, words, spans = (
                np.empty((room, 2)),
                np.empty((room, order), np.uint64),
                np.empty((room, 2), np.int64),
            )
            num_rows, self._position, is_broken = read_lines(
                text, self._position, order, logs, words, spans
            )
            if is_broken:
                self._fail(f"expected a number, {order} words and perhaps a number", self._position)
            if not num_rows:
                self._fail(f"{done} {order}-grams where the header says {size}", self._position)
            is_wrong = ~((logs[:num_rows, 0] <= 0) & (np.abs(logs[:num_rows, 1]) <= _MAX_LOGARITHM))
            if is_wrong.any():
                self._fail(
                    "expected the logarithms of a probability and of a backoff weight",
                    spans[is_wrong.argmax(), 0],
                )
            yield (
                slice(done, done + num_rows),
                words[:num_rows],
                logs[:num_rows].T,
                spans[:num_rows],
            )
            done += num_rows

    def _keys(self, words: NDArray[np.uint64], spans: Rows, counts: NgramCounts) -> Rows:
        """Return the keys of n-grams of the order above the tables, given the hashes of their
        words."""
        ids = (
            self._index.get_indexer(words.view(np.int64).ravel())
            .reshape(words.shape)
            .astype(np.int64)
        )
        if (ids < 0).any():
            row = int((ids < 0).any(axis=1).argmax())
            self._fail("a word of this n-gram is not among the 1-grams", spans[row, 0])
        prefixes = ids[:, 0]
        for place in range(1, ids.shape[1] - 1):
            prefixes = counts.table(place + 1).find(prefixes, ids[:, place])
        if (prefixes < 0).any():
            self._fail(
                f"a {ids.shape[1]}-gram whose beginning is not listed",
                spans[(prefixes < 0).argmax(), 0],
            )
        keys: Rows = prefixes * counts.vocab_size + ids[:, -1]
        return keys

    def _next_line(self) -> str:
        """Return the next line that is not blank."""
        while self._position < len(self._text):
            self._line, end = self._position, self._text.find(b"\n", self._position)
            self._position = end + 1 if end >= 0 else len(self._text)
            if line := self._text[self._line : self._position].strip(_SEPARATORS + b"\n"):
                return line.decode(errors="replace")
        return self._fail("ends before \\end\\: truncated", self._position)

    def _expect(self, line: str, problem: str = "") -> None:
        if self._next_line() != line:
            self._fail(f"expected {line}{problem}", self._line)

    def _fail(self, what: str, position: int) -> NoReturn:
        line = self._text.count(b"\n", 0, int(position)) + 1
        raise DataError(f"{self._path}: line {line}: {what}")
