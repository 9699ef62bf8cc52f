"""Reading n-gram models in the ARPA format, plain or ``.gz``."""

import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from seqlm.core.errors import DataError, MachineError
from seqlm.ngrams.arpa.writing import unescape
from seqlm.ngrams.counts.count_tables import Counts, Ids, Probs, Table

_BLANK_CHARACTERS = " \t\r\v\f"
"""What parts fields; other white space of Unicode may stand in a token that another program wrote."""
_BLANKS = re.compile(f"[{_BLANK_CHARACTERS}]+")


@dataclass(frozen=True)
class ArpaModel:
    """A model that was read: its own tokens, and tables of probabilities and backoff weights."""

    tokens: list[str]
    counts: Counts
    """The n-grams of each order; the counts themselves are not in the format and are 1."""
    listed: list[Probs]
    backoffs: list[Probs]
    """For order n at place n - 1, one weight an n-gram; the highest order has none."""

    @property
    def order(self) -> int:
        """The highest order."""
        return len(self.listed)

    def encode(self, tokens: Sequence[str]) -> Ids:
        """Return the ids of tokens, that of ``<unk>`` for those the model lacks.

        Raises DataError where a token is missing and the model has no ``<unk>``.
        """
        # A token of the text that is spelt like a mark stands behind the mark and wins.
        indices = {token: index for index, token in enumerate(self.tokens)}
        unknown = indices.get("<unk>", -1)
        ids = np.array([indices.get(token, unknown) for token in tokens], np.int64)
        if (ids < 0).any():
            raise DataError(f"the model has no <unk> for {tokens[int(np.argmin(ids))]!r}")
        return ids

    def probs(self, ids: Ids) -> Probs:
        """Return p of tokens 2..N of a stream, each given those before it."""
        rows = self.counts.rows_of(ids, self.order)
        result: Probs = self.listed[0][rows[0][1:]]
        for n in range(2, self.order + 1):
            context, gram = rows[n - 2][: len(rows[n - 1])], rows[n - 1]
            weights = np.where(context >= 0, self.backoffs[n - 2][context], 1.0)
            result = result.copy()
            result[n - 2 :] = np.where(gram >= 0, self.listed[n - 1][gram], weights * result[n - 2 :])
        return result


def read_arpa(path: Path) -> ArpaModel:
    """Return the model in an ARPA file, plain or ``.gz``.

    Raises DataError, with the line, for a file that is truncated, binary, or does not
    hold what its header says.
    """
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._indices: dict[str, int] = {}
        """Ids of the fields, in the order in which the 1-grams list them."""
        self._lines = iter(self._decoded().split("\n"))

    def read(self) -> ArpaModel:
        sizes = self._header()
        tables: list[Table] = []
        listed: list[Probs] = []
        backoffs: list[Probs] = []
        rows_below: dict[tuple[int, ...], int] = {}
        line = self._next_full()
        for order, size in enumerate(sizes, start=1):
            if line != f"\\{order}-grams:":
                self._fail(f"expected \\{order}-grams:")
            entries: list[tuple[tuple[int, ...], float, float]] = []
            while not (line := self._next_full()).startswith("\\"):
                entries.append(self._entry(line, order))
            if len(entries) != size:
                self._fail(f"{len(entries)} {order}-grams where the header says {size}")
            entries.sort()
            rows = {gram: row for row, (gram, _, _) in enumerate(entries)}
            if len(rows) != size:
                self._fail(f"a {order}-gram is listed twice")
            if order > 1 and any(gram[:-1] not in rows_below for gram in rows):
                self._fail(f"a {order}-gram whose beginning is not listed")
            # Sorted n-grams have sorted keys, because the rows of their beginnings are sorted too.
            prefixes = np.array([rows_below[gram[:-1]] if order > 1 else 0 for gram in rows], np.int64)
            lasts = np.array([gram[-1] for gram in rows], np.int64)
            none = np.zeros(size, np.int64)
            tables.append(Table(prefixes * sizes[0] + lasts, none + 1))
            listed.append(10.0 ** np.array([log_prob for _, log_prob, _ in entries]))
            backoffs.append(10.0 ** np.array([weight for _, _, weight in entries]))
            rows_below = rows
        if line != "\\end\\":
            self._fail("expected \\end\\")
        return ArpaModel([unescape(field) for field in self._indices], Counts(sizes[0], tables, []), listed, backoffs)

    def _decoded(self) -> str:
        try:
            content = self._path.read_bytes()
            content = gzip.decompress(content) if self._path.suffix == ".gz" else content
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{self._path}: binary, not an ARPA file") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{self._path}: not a whole gzip file: {error}") from error
        except FileNotFoundError as error:
            raise DataError(f"{self._path}: no such file") from error
        except OSError as error:
            raise MachineError(f"{self._path}: cannot be read: {error.strerror}") from error

    def _header(self) -> list[int]:
        if self._next_full() != "\\data\\":
            self._fail("expected \\data\\: not an ARPA file")
        sizes: list[int] = []
        for line in self._lines:
            self._number += 1
            if not (stripped := line.strip(_BLANK_CHARACTERS)):
                break
            found = re.fullmatch(r"ngram (\d+)\s*=\s*(\d+)", stripped)
            if not found or int(found[1]) != len(sizes) + 1:
                self._fail("expected ngram N=COUNT, orders in turn")
            sizes.append(int(found[2]))
        if not sizes:
            self._fail("a header without orders")
        return sizes

    def _entry(self, line: str, order: int) -> tuple[tuple[int, ...], float, float]:
        """Return the token ids, the logarithm of p and that of the backoff weight of one line."""
        fields = _BLANKS.split(line)
        if len(fields) not in (order + 1, order + 2):
            self._fail(f"expected a number, {order} words and perhaps a number")
        try:
            log_prob, weight = float(fields[0]), float(fields[order + 1]) if len(fields) > order + 1 else 0.0
        except ValueError:
            self._fail("expected a number")
        grams = fields[1 : order + 1]
        if order == 1 and self._indices.setdefault(grams[0], len(self._indices)) != len(self._indices) - 1:
            self._fail(f"the word {grams[0]!r} is listed twice")
        if missing := [field for field in grams if field not in self._indices]:
            self._fail(f"the word {missing[0]!r} is not among the 1-grams")
        return tuple(self._indices[field] for field in grams), log_prob, weight

    def _next_full(self) -> str:
        for line in self._lines:
            self._number += 1
            if stripped := line.strip(_BLANK_CHARACTERS):
                return stripped
        return self._fail("ends before \\end\\: truncated")

    def _fail(self, what: str) -> NoReturn:
        raise DataError(f"{self._path}: line {self._number}: {what}")
