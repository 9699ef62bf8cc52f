"""Comparison of the book's values with those of a run, in two tables.

``printed`` contains what chapter 8 of *Dive into Deep Learning*, edition 0.16, prints; ``derived``
what the chapter's code computes but no page prints. ``book.yaml`` holds the values and the allowed
ranges. Both tables apply only to the book's corpus.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout
from seqlm.train.minibatches import minibatches
from seqlm.vocab.corpus import SPLITS

CORPUS = "time_machine"
TABLES = {"printed": "book_prints", "derived": "book_code_gives"}
"""Table -> its column with the book's values."""
Values = dict[str, Any]
"""Values of the run by the names in ``book.yaml``: the report that a value comes from and, after a
space, what it is there, such as ``sine/summary.json loss.epoch_1``. Others come from no report."""
Tables = dict[str, pd.DataFrame]

_BOOK = Path(__file__).with_name("book.yaml")
_SAMPLE_LENGTH = 50
_TAU, _NUM_TRAIN, _MAX_K = 4, 600, 64
"""Settings of the book's sine."""
_TOLERANCE = 1e-4
"""Relative difference that single precision explains."""


def read_book() -> dict[str, list[dict[str, Any]]]:
    """Table -> its entries in ``book.yaml``."""
    entries: dict[str, list[dict[str, Any]]] = YAML(typ="safe", pure=True).load(_BOOK)
    return entries


def compare_with_book(layout: Layout) -> Tables:
    """Both tables for the run in this folder; empty unless its corpus is the book's.

    Raises DataError if a report is missing or broken.
    """
    if read_json(layout.corpus_record)["name"] != CORPUS:
        return empty_tables()
    sine = layout.reports("sine")
    values = sine_values(read_json(sine / "summary.json"), read_csv(sine / "predictions.csv"))
    ngrams, train = layout.reports("ngrams"), layout.reports("train")
    for path in (*ngrams.glob("*/summary.json"), *train.glob("*/summary.json")):
        report = path.relative_to(layout.root / "reports").as_posix()
        values |= reported(report, read_json(path))
    return compare(
        values
        | _text_values(layout)
        | _ngram_values(layout)
        | _minibatch_values()
        | _sample_values(layout)
    )


def empty_tables() -> Tables:
    """Tables for a run on another corpus."""
    return {table: rows.head(0) for table, rows in compare({}).items()}


def compare(values: Values) -> Tables:
    """Both tables for these values; entries whose value is missing are not compared."""
    return {
        table: pd.DataFrame(
            [_comparison_row(entry, values, TABLES[table]) for entry in entries], dtype=object
        )
        for table, entries in read_book().items()
    }


def _comparison_row(entry: dict[str, Any], values: Values, book_column: str) -> dict[str, Any]:
    """``met`` is empty if the values are not compared; ``source`` is a report."""
    name = entry.get("here", "")
    here = values.get(name)
    book = values.get(entry["like"]) if "like" in entry else entry.get("book")
    met: bool | None = None
    if "not_compared" in entry:
        allowed = f"not compared: {entry['not_compared']}"
    elif here is None or book is None:
        allowed = "not compared: not part of this run"
    elif "allowed" in entry:  # the value depends on random numbers
        low, high = entry["allowed"]
        met = low <= here <= high and rounds_into(str(book), low, high)
        allowed = _allowed_text(str(book), low, high)
    else:
        met, allowed = _is_equal(here, book), "equal"
    return {
        "section": entry["section"],
        "quantity": entry["quantity"],
        book_column: _cell(book),
        "here": _cell(here),
        "allowed": allowed,
        "met": met,
        "source": name.split()[0] if here is not None and " " in name else "",
    }


def _allowed_text(book: str, low: float, high: float) -> str:
    text = f"{low:g} to {high:g}"
    if low <= float(book) <= high:
        return text
    digits = _decimals(book)
    return f"{text}, which is {low:.{digits}f} to {high:.{digits}f} as printed"


def _is_equal(here: Any, book: Any) -> bool:
    if isinstance(here, float):
        return math.isclose(here, book, rel_tol=_TOLERANCE)
    return str(here) == str(book)


def _decimals(printed: str) -> int:
    return len(printed.partition(".")[2])


def rounds_into(printed: str, low: float, high: float) -> bool:
    """Whether a number from this range may have been rounded to the printed one."""
    rounding_error = 0.5 * 10.0 ** -_decimals(printed)
    return low - rounding_error <= float(printed) <= high + rounding_error


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def agreement(tables: Tables) -> tuple[int, int]:
    """How many of the book's values the run reproduces, and how many are compared; none for another
    corpus."""
    met = pd.concat(tables.values())["met"].dropna()
    return int(met.sum()), len(met)


def reported(report: str, content: Mapping[str, Any]) -> Values:
    """The values in a report."""
    (values,) = pd.json_normalize(dict(content)).to_dict("records")
    return {f"{report} {key}": value for key, value in values.items()}


def sine_values(summary: Mapping[str, Any], predictions: pd.DataFrame) -> Values:
    """Values of the sine, and of the book's procedure on the run's own series."""
    values = reported("sine/summary.json", summary)
    if "k_1" in summary["rmse"]:
        ratio = summary["rmse"]["k_1"] / summary["repeat_rmse"]["k_1"]
        values["sine/summary.json rmse.k_1/repeat"] = ratio
    errors = _repeat_errors(predictions["observed"].to_numpy(np.float64))
    return values | reported("sine/predictions.csv", errors)


def _repeat_errors(series: np.ndarray) -> dict[str, float]:
    """Training loss, and error k steps ahead, of repeating the last of tau values."""
    # The last value of each window after the training pairs.
    last = np.arange(_NUM_TRAIN + _TAU - 1, len(series) - _MAX_K)
    if len(last) == 0:
        return {}
    steps = np.diff(series)[_TAU - 1 : _TAU - 1 + _NUM_TRAIN]
    errors = {"repeat_loss": float(np.mean(steps**2))}
    for k in (1, _MAX_K):
        squares = (series[last + k] - series[last]) ** 2
        errors[f"repeat_rmse.k_{k}"] = float(np.sqrt(np.mean(squares)))
    return errors


def _text_values(layout: Layout) -> Values:
    lines = read_json(layout.reports("preprocess", "lines.json"))
    splits = read_json(layout.reports("preprocess", "summary.json"))
    head = read_json(layout.reports("ngrams", "word", "head.json"))
    num_words = [len(line.split()) for line in lines]
    values: Values = {
        "preprocess/summary.json lines": sum(splits[split]["lines"] for split in SPLITS),
        "preprocess/lines.json words": _join_words(num_words),
        "ngrams/word/head.json tokens": _join_words(head["tokens"]),
    }
    ids_of_lines = np.split(head["first_ids"] or [], np.cumsum(num_words))
    for index, (line, ids) in enumerate(zip(lines, ids_of_lines, strict=False)):
        values[f"preprocess/lines.json line {index}"] = line
        values[f"ngrams/word/head.json line {index}"] = _join_words(ids)
    return values


def _ngram_values(layout: Layout) -> Values:
    values = {}
    for n, rows in read_csv(layout.reports("ngrams", "word", "frequencies.csv")).groupby("n"):
        top = rows.head(10)
        ngrams = ", ".join(top["ngram"] + " " + top["count"].astype(str))
        values[f"ngrams/word/frequencies.csv top {n}"] = ngrams
    return values


def _minibatch_values() -> Values:
    """Numbers of minibatches when 0, 1, ..., 34 is cut as in section 8.3.4, at many offsets."""
    values: Values = {}
    for name in ("random", "sequential"):
        rngs = map(np.random.default_rng, range(20))
        epochs = [list(minibatches(name, np.arange(35), 2, 5, rng)) for rng in rngs]
        sizes = {sum(len(inputs) for inputs, _ in batches) for batches in epochs}
        values[f"minibatches.{name}"] = _join_words(sorted(set(map(len, epochs))))
        values[f"subsequences.{name}"] = _join_words(sorted(sizes))
    return values


def _sample_values(layout: Layout) -> Values:
    return {
        f"generate/samples.json {sample['model']}, {sample['prefix']}": (
            sample["prefix"] + sample["text"][:_SAMPLE_LENGTH]
        )
        for sample in read_json(layout.reports("generate", "samples.json"))
        if sample["temperature"] == 0
    }


def _join_words(items: Iterable[Any]) -> str:
    return " ".join(map(str, items))
