"""The book's values beside those that a run computed.

The values are those of chapter 8 of *Dive into Deep Learning*, edition 0.16, and hold for
its corpus. Counts and orders must be equal; training perplexities and losses depend on
the seed and have bounds.
"""

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout

CORPUS = "time_machine"

_LINE_0 = "the time machine by h g wells"
_LINE_10_BEGINS = "twinkled and his usually pale face"
_FIRST_WORDS = "<unk> the i and of a to was in that"
_LINE_0_ENCODED = "1 19 50 40 2183 2184 400"
_TOP = {
    1: "the 2261, i 1267, and 1245, of 1155, a 816, to 695, was 552, in 541, that 443, my 440",
    2: (
        "of the 309, in the 169, i had 130, i was 112, and the 109, "
        "the time 102, it was 99, to the 85, as i 78, of a 73"
    ),
    3: (
        "the time traveller 59, the time machine 30, the medical man 24, it seemed to 16, it was a 15, "
        "here and there 15, seemed to me 14, i did not 14, i saw the 13, i began to 13"
    ),
}
_NAMES = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
_DISTINCT = {1: 4579, 2: 20_234, 3: 29_882}

_RUNS = {
    # run: section, the book's training perplexity of the last epoch (None: not given), the largest allowed
    "scratch-sequential": ("8.5", 1.0, 1.06),
    "scratch-random": ("8.5", 1.5, 1.7),
    "concise-sequential": ("8.6", 1.3, 1.4),
    "concise-random": ("8.6", None, 1.8),
}
_SINE_LOSSES = (
    # epoch, the book's training loss, bounds
    (1, 0.081, (0.04, 0.11)),
    (5, 0.053, (0.04, 0.065)),
)


@dataclass(frozen=True)
class Row:
    """One quantity of the book and what a run made of it."""

    section: str
    quantity: str
    book: str
    here: str
    tolerance: str
    ok: bool
    source: str
    """The report that the value stands in, from the folder of reports."""


COLUMNS = tuple(Row.__dataclass_fields__)


def applies(corpus: dict[str, Any]) -> bool:
    """Whether the corpus of a run is the book's."""
    return bool(corpus["name"] == CORPUS)


def parity_table(layout: Layout) -> pd.DataFrame:
    """Return the rows of the book that the run in this folder computed.

    Columns: section, quantity, book, here, tolerance, ok, source. It means something only for the
    book's own corpus. Raises DataError where a report is missing or broken.
    """
    rows = [*_sine_rows(layout), *_text_rows(layout), *_ngram_rows(layout), *_run_rows(layout)]
    return pd.DataFrame([asdict(row) for row in rows], columns=COLUMNS)


def _sine_rows(layout: Layout) -> list[Row]:
    losses = read_json(layout.reports("sine", "summary.json"))["loss"]
    rows = []
    for epoch, book, bounds in _SINE_LOSSES:
        here = losses.get(f"epoch_{epoch}")
        if here is not None:
            quantity = f"training loss of the sine MLP, epoch {epoch}"
            rows.append(_bounded("8.1", quantity, book, here, bounds, "sine/summary.json"))
    return rows


def _text_rows(layout: Layout) -> list[Row]:
    lines = read_json(layout.reports("preprocess", "lines.json"))
    chars, words = (read_json(layout.reports("ngrams", kind, "summary.json")) for kind in ("char", "word"))
    head = read_json(layout.reports("ngrams", "word", "head.json"))
    shown = dict(enumerate(lines))
    line_10 = shown.get(10, "")[: len(_LINE_10_BEGINS)]
    tokens, first_line = " ".join(head["tokens"]), " ".join(map(str, head["first_line"] or []))
    size = "characters in the vocabulary, <unk> included"
    return [
        _exact("8.2", "line 0", _LINE_0, shown.get(0, ""), "preprocess/lines.json"),
        _exact("8.2", "line 10 begins", _LINE_10_BEGINS, line_10, "preprocess/lines.json"),
        _exact("8.2", "characters in all lines", 170_580, chars["tokens"], "ngrams/char/summary.json"),
        _exact("8.2", size, 28, chars["vocabulary_size"], "ngrams/char/summary.json"),
        _exact("8.2", "first words of the vocabulary", _FIRST_WORDS, tokens, "ngrams/word/head.json"),
        _exact("8.2", "line 0 encoded", _LINE_0_ENCODED, first_line, "ngrams/word/head.json"),
        _exact("8.3", "words", 32_775, words["tokens"], "ngrams/word/summary.json"),
    ]


def _ngram_rows(layout: Layout) -> list[Row]:
    frequent = read_csv(layout.reports("ngrams", "word", "frequencies.csv"))
    distinct = read_json(layout.reports("ngrams", "word", "summary.json"))["distinct"]
    rows = []
    for n, book in _TOP.items():
        top = frequent[frequent["n"] == n].head(10)
        here = ", ".join(f"{ngram} {count}" for ngram, count in zip(top["ngram"], top["count"], strict=True))
        rows.append(_exact("8.3", f"ten most frequent {_NAMES[n]}", book, here, "ngrams/word/frequencies.csv"))
    for n, count in _DISTINCT.items():
        rows.append(_exact("8.3", f"distinct {_NAMES[n]}", count, distinct.get(str(n)), "ngrams/word/summary.json"))
    return rows


def _run_rows(layout: Layout) -> list[Row]:
    rows = []
    for run, (section, book, high) in _RUNS.items():
        path = layout.reports("train", run, "summary.json")
        if path.exists():
            here = read_json(path)["last_epoch_train_perplexity"]
            source = f"train/{run}/summary.json"
            rows.append(_bounded(section, f"training perplexity of {run}", book, here, (None, high), source))
    return rows


def _exact(section: str, quantity: str, book: object, here: object, source: str) -> Row:
    return Row(section, quantity, str(book), str(here), "exact", str(book) == str(here), source)


def _bounded(
    section: str, quantity: str, book: float | None, here: float, bounds: tuple[float | None, float], source: str
) -> Row:
    low, high = bounds
    tolerance = f"at most {high:g}" if low is None else f"{low:g} to {high:g}"
    shown = "not given" if book is None else f"{book:g}"
    ok = (low is None or here >= low) and here <= high
    return Row(section, quantity, shown, f"{here:.3f}", tolerance, ok, source)
