"""The book's values beside those of a run, in two tables.

``printed`` has what the pages of chapter 8 of *Dive into Deep Learning*, edition 0.16, print;
``derived`` has what the chapter's code gives although no page prints it. ``book.yaml`` holds the
values and how far a run may differ from them; this module collects the run's own. Both tables apply
to the book's corpus only.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from seqlm.core.files import read_csv, read_json
from seqlm.core.layout import Layout
from seqlm.train.minibatches import random_minibatches, sequential_minibatches

CORPUS = "time_machine"
TABLES = {"printed": "book_prints", "derived": "book_code_gives"}
"""Table -> its column with the book's values."""
COLUMNS = ("section", "quantity", "{book}", "here", "allowed", "met", "source")
"""``met`` is empty if the two values are not compared; ``source`` is a file in the folder of
reports."""

Values = dict[str, tuple[Any, str]]
"""Name in ``book.yaml`` -> value of the run, and the report it comes from."""

_BOOK = Path(__file__).with_name("book.yaml")
RUNS = ("scratch-sequential", "scratch-random", "concise-sequential", "concise-random")
_SAMPLE_LENGTH = 50
_TAU, _NUM_TRAIN, _MAX_K = 4, 600, 64
"""Of the book's sine."""
_TOLERANCE = 1e-4
"""Relative: values that should be equal were computed from numbers in single precision."""


def read_book() -> dict[str, list[dict[str, Any]]]:
    """Return the entries of ``book.yaml`` by table."""
    found: dict[str, list[dict[str, Any]]] = YAML(typ="safe", pure=True).load(_BOOK)
    return found


def parity_tables(layout: Layout) -> dict[str, pd.DataFrame]:
    """Return the two tables for the run in this folder.

    They are empty for another corpus than the book's. Raises DataError if a report is missing or
    broken.
    """
    if read_json(layout.corpus_record)["name"] != CORPUS:
        return empty_tables()
    sine = layout.reports("sine")
    found = sine_values(read_json(sine / "summary.json"), read_csv(sine / "predictions.csv"))
    found |= (
        _text_values(layout) | _ngram_values(layout) | _minibatch_values() | _run_values(layout)
    )
    return compare(found)


def empty_tables() -> dict[str, pd.DataFrame]:
    """Return the tables of a run on another corpus."""
    return {table: rows.head(0) for table, rows in compare({}).items()}


def compare(values: Values) -> dict[str, pd.DataFrame]:
    """Return both tables for these values; entries whose value is missing are not compared."""
    tables = {}
    for table, entries in read_book().items():
        columns = [column.format(book=TABLES[table]) for column in COLUMNS]
        tables[table] = pd.DataFrame(
            [_row(entry, values) for entry in entries], columns=columns, dtype=object
        )
    return tables


def metrics(tables: Mapping[str, pd.DataFrame]) -> dict[str, int]:
    """Return how many of the values compared with the book's differ more than they may; none for
    another text."""
    met = [value for rows in tables.values() for value in rows["met"] if value is not None]
    return {"missed": met.count(False)} if met else {}


def _row(entry: dict[str, Any], values: Values) -> tuple[Any, ...]:
    here, source = values.get(entry.get("here", ""), (None, ""))
    book = values.get(entry["like"], (None, ""))[0] if "like" in entry else entry.get("book")
    met, allowed = None, "equal"  # values that depend on random numbers have a range
    if "not_compared" in entry:
        allowed = f"not compared: {entry['not_compared']}"
    elif here is None or book is None:
        allowed = "not compared: not part of this run"
    elif "allowed" in entry:
        low, high = entry["allowed"]
        met, allowed = (
            low <= here <= high and could_be_in(str(book), low, high),
            f"{low:g} to {high:g}",
        )
        if not low <= float(book) <= high:
            digits = len(str(book).partition(".")[2])
            allowed += f", which is {low:.{digits}f} to {high:.{digits}f} as printed"
    else:
        met = (
            math.isclose(here, book, rel_tol=_TOLERANCE)
            if isinstance(here, float)
            else str(here) == str(book)
        )
    return entry["section"], entry["quantity"], _shown(book), _shown(here), allowed, met, source


def could_be_in(printed: str, low: float, high: float) -> bool:
    """Return whether a number from this range may have been rounded to the one that is printed."""
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return low - half <= float(printed) <= high + half


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def agreement(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return how many of the book's values the run reproduces, "" for another text."""
    met = [value for rows in tables.values() for value in rows["met"] if value is not None]
    return (
        f"the book: {met.count(True)} of {len(met)} compared values are reproduced" if met else ""
    )


def sine_values(summary: Mapping[str, Any], predictions: pd.DataFrame) -> Values:
    """Return what is compared of the sine; ``series.*`` is the book's procedure, applied to the
    run's own series."""
    measures = ("loss", "rmse", "repeat_rmse")  # by names such as epoch_1 and k_1
    found = {
        f"sine.{kind}.{name.partition('_')[2]}": value
        for kind in measures
        for name, value in summary[kind].items()
    }
    if "k_1" in summary["rmse"]:
        found["sine.rmse.1/repeat"] = summary["rmse"]["k_1"] / summary["repeat_rmse"]["k_1"]
    found |= {"sine.repeat_loss": summary["repeat_loss"], "sine.curvature": summary["curvature"]}
    values = {name: (float(value), "sine/summary.json") for name, value in found.items()}
    series = predictions["observed"].to_numpy(np.float64)
    return values | {
        name: (value, "sine/predictions.csv") for name, value in _repeat_errors(series).items()
    }


def _repeat_errors(series: np.ndarray) -> dict[str, float]:
    """Return the loss on the training pairs, and the error k steps ahead, of repeating the last of
    tau values."""
    last = np.arange(
        _NUM_TRAIN + _TAU - 1, len(series) - _MAX_K
    )  # of the windows after the training pairs
    if len(last) == 0:
        return {}
    training = np.diff(series)[_TAU - 1 : _TAU - 1 + _NUM_TRAIN]
    found = {"series.repeat_loss": float(np.mean(training**2))}
    for k in (1, _MAX_K):
        found[f"series.repeat_rmse.{k}"] = float(
            np.sqrt(np.mean((series[last + k] - series[last]) ** 2))
        )
    return found


def _text_values(layout: Layout) -> Values:
    lines = read_json(layout.reports("preprocess", "lines.json"))
    splits = read_json(layout.reports("preprocess", "summary.json"))
    chars = read_json(layout.reports("ngrams", "char", "summary.json"))
    head = read_json(layout.reports("ngrams", "word", "head.json"))
    shown, summary, vocab = (
        "preprocess/lines.json",
        "ngrams/char/summary.json",
        "ngrams/word/head.json",
    )
    words = [len(line.split()) for line in lines]
    found: Values = {
        "text.lines": (
            sum(splits[split]["lines"] for split in ("train", "val", "test")),
            "preprocess/summary.json",
        ),
        "text.words": (_joined(words), shown),
        "text.characters": (chars["tokens"], summary),
        "vocab.characters": (chars["vocabulary_size"], summary),
        "vocab.words": (_joined(head["tokens"]), vocab),
    }
    ends = np.cumsum(words).tolist()
    for number, (line, start, end) in enumerate(zip(lines, [0, *ends], ends, strict=False)):
        found[f"text.line.{number}"] = (line, shown)
        found[f"vocab.line.{number}"] = (_joined((head["first_ids"] or [])[start:end]), vocab)
    return found


def _ngram_values(layout: Layout) -> Values:
    frequent = read_csv(layout.reports("ngrams", "word", "frequencies.csv"))
    summary, source = (
        read_json(layout.reports("ngrams", "word", "summary.json")),
        "ngrams/word/summary.json",
    )
    found: Values = {"ngrams.words": (summary["tokens"], source)}
    for n, count in summary["distinct"].items():
        found[f"ngrams.distinct.{n}"] = (count, source)
    for n, rows in frequent.groupby("n"):
        top = rows.head(10)
        shown = ", ".join(
            f"{ngram} {count}" for ngram, count in zip(top["ngram"], top["count"], strict=True)
        )
        found[f"ngrams.top.{n}"] = (shown, "ngrams/word/frequencies.csv")
    return found


def _minibatch_values() -> Values:
    """Cut 0, 1, ..., 34 into minibatches of 2 with 5 steps, as section 8.3.4 does, with several
    random offsets."""
    found = {}
    for name, cut in (("random", random_minibatches), ("sequential", sequential_minibatches)):
        cuts = [list(cut(np.arange(35), 2, 5, np.random.default_rng(seed))) for seed in range(20)]
        found[f"minibatches.{name}"] = {len(batches) for batches in cuts}
        found[f"subsequences.{name}"] = {
            sum(len(inputs) for inputs, _ in batches) for batches in cuts
        }
    return {name: (_joined(sorted(counts)), "") for name, counts in found.items()}


def _run_values(layout: Layout) -> Values:
    found: Values = {}
    for run in RUNS:
        path = layout.reports("train", run, "summary.json")
        if path.exists():
            summary, source = read_json(path), f"train/{run}/summary.json"
            found[f"perplexity.{run}"] = (summary["last_epoch_train_perplexity"], source)
            found[f"engine.{run}"] = (summary["engine"], source)
    for sample in read_json(layout.reports("generate", "samples.json")):
        if sample["temperature"] == 0:
            text = sample["prefix"] + sample["text"][:_SAMPLE_LENGTH]
            found[f"sample.{sample['model']}.{sample['prefix']}"] = (text, "generate/samples.json")
    return found


def _joined(items: list[Any]) -> str:
    return " ".join(map(str, items))
