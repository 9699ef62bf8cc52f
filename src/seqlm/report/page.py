"""Gathers what the stages reported and renders the page."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from seqlm.core.cells import is_missing
from seqlm.core.files import read_csv, read_json, read_text
from seqlm.core.layout import Layout
from seqlm.evaluate.columns import COLUMNS, Column, describe_share, table_groups, table_text
from seqlm.preprocess.cleaning import Letters
from seqlm.preprocess.preparing import decoding_warnings
from seqlm.report.captions import all_captions, unbroken
from seqlm.report.figures.curves import CORPORA
from seqlm.report.figures.plots import MAX_RUNS
from seqlm.report.findings import all_findings, highlights, replaced_corpus, summary_text
from seqlm.report.passages import align, by_mean_bits
from seqlm.report.rendering import render
from seqlm.train.settings import run_names
from seqlm.vocab.kinds import ALL, KINDS
from seqlm.vocab.vocabulary import Vocab

_TOP_ROWS = 10
_LINE_LENGTH = 100
_SOURCES = ("page.css", "page.js", "surprisal_view.js")


def build_page(layout: Layout, title: str, parity: Mapping[str, pd.DataFrame]) -> str:
    """Return the page as HTML; ``parity`` has the tables of :mod:`seqlm.report.parity`, empty for other corpora.

    It contains the figures that :func:`seqlm.report.drawing.draw_all` has drawn. Raises DataError if a report is
    missing or broken.
    """

    def figure(name: str, alternative: str) -> Markup:
        return inline_svg(layout.figure(name), alternative)

    rows = {name: _records(table) for name, table in parity.items()}
    return render("page.html", _SOURCES, title=title, **_content(layout), parity=rows, figure=figure)


def build_surprisal_page(name: str, scores: Mapping[str, Mapping[str, Any]], remarks: Sequence[str]) -> str:
    """Return a page that shows a text shaded by its surprisal.

    ``scores``: model -> what :func:`seqlm.score.user_text.page_content` returns for it. ``remarks``: what a reader
    should know about the text.
    """
    passages = align({model: score["passage"] for model, score in scores.items()})
    pair, compared = [*scores, ""][:2], by_mean_bits(passages["models"])
    return render(
        "surprisal.html", _SOURCES, name=name, scores=scores, remarks=remarks, passages=passages, pair=pair, label=str,
        compared=compared,
    )  # fmt: skip


def build_summary(layout: Layout) -> str:
    """Return the models of the chart, the findings, and the main table as plain text."""
    table = read_csv(layout.reports("evaluate", "table.csv"))
    share = describe_share(read_json(layout.reports("evaluate", "metrics.json")))
    text = f"{summary_text(table)}\nAll models:\n\n{table_text(table, share)}"
    replaced = textwrap.fill(replaced_corpus(read_json(layout.corpus_record)), width=_LINE_LENGTH)
    return f"{replaced}\n\n{text}" if replaced else text


def inline_svg(path: Path, title: str) -> Markup:
    """Return an SVG file as a piece of HTML with a name for screen readers and ids that begin with the file's name."""
    text = read_text(path)
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", path.stem)
    # Two figures on one page must not share ids.
    text = re.sub(r'\bid="', f'id="{prefix}-', text[text.index("<svg") :])
    text = re.sub(r"<defs>\s*<style.*?</defs>\s*", "", text, count=1, flags=re.DOTALL)  # page.css has it
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", text)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def _content(layout: Layout) -> dict[str, Any]:
    """Return what the page shows beside its figures, by the names that its template knows."""
    ngrams = {kind: layout.reports("ngrams", kind) for kind in KINDS}
    frequent = read_csv(ngrams["word"] / "frequencies.csv")
    table = read_csv(layout.reports("evaluate", "table.csv"))
    passages, runs, charted = align(read_json(layout.passages)), run_names(layout.configs), highlights(table)
    labels: dict[str, str] = table.set_index("model")["label"].to_dict()
    vocabs = [
        {"noun": kind.noun, "has_unknown": kind.has_unknown} | read_json(layout.reports("vocab", name, "summary.json"))
        for name, kind in ALL.items()
    ]
    return {
        "corpus": (corpus := read_json(layout.corpus_record)),
        "replaced": replaced_corpus(corpus),
        "findings": {name: unbroken(found) for name, found in all_findings(table).items()},
        "splits": _records(read_csv(layout.reports("preprocess", "splits.csv"))),
        "vocabs": vocabs,
        "frequent": {n: _records(rows.head(_TOP_ROWS)) for n, rows in frequent.groupby("n")},
        "zipf": read_json(ngrams["word"] / "summary.json")["zipf"],
        "min_freq": _records(read_csv(ngrams["word"] / "min_freq.csv")),
        "storage": {kind: _records(read_csv(folder / "storage.csv")) for kind, folder in ngrams.items()},
        "groups": table_groups(table),
        "columns": [column for column in COLUMNS if column.heading],
        "highlights": ", ".join(f"{row.label} {row.test_bits:.2f}" for row in charted.itertuples()),
        "has_dynamic": bool(charted["dynamic"].any()),
        "share": describe_share(read_json(layout.reports("evaluate", "metrics.json"))),
        "choices": _choices(read_json(layout.reports("evaluate", "choices.json")), labels),
        "marks": _marks(table),
        "sort_value": _sort_value,
        "captions": all_captions(layout, table),
        "cleaning": _cleaning(layout),
        "warnings": [warning for vocab in vocabs for warning in vocab["warnings"] or ()],
        "runs_left_out": max(len(runs) - MAX_RUNS, 0),
        "passages": passages,
        "pair": _pair(list(passages["models"]), table),
        "label": labels.get,
        "compared": by_mean_bits(passages["models"]),
        "chapter": bool(table["as_in_chapter"].any()),
        "samples": _by_model(read_json(layout.reports("generate", "samples.json")), list(table["model"])),
        "gradients": read_json(layout.reports("gradients", "summary.json")),
        "sine": read_json(layout.reports("sine", "summary.json")),
        "taus": _records(read_csv(layout.reports("sine", "tau.csv"))),
        "curves": _machines(layout) if corpus["name"] in CORPORA else "",
    }


def _machines(layout: Layout) -> str:
    """Return on what the curves were measured."""
    machines = read_csv(layout.benchmark("curves_time.csv"))["machine"].unique()
    return " and ".join(re.sub(r"(.+), (\d+) cores", r"a \2-core \1 machine", machine) for machine in machines)


def _cleaning(layout: Layout) -> list[str]:
    """Return what a reader should know about the decoding and cleaning of the text."""
    letters = Letters(**read_json(layout.reports("preprocess", "summary.json"))["decoding"])
    return decoding_warnings(letters, Vocab.load(layout.vocab("char"), "char").normalise)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return records


def _pair(shown: list[str], table: pd.DataFrame) -> list[str]:
    """Return the two models that the surprisal view begins with: the best one, and the best n-gram model or another."""
    ngrams = table[(table["family"] == "ngram") & ~table["dynamic"]]
    best = [*table["model"].head(1), *ngrams.sort_values("val_bits", kind="stable")["model"].head(1)]
    return [*dict.fromkeys([*(name for name in best if name in shown), *shown]), ""][:2]


def _marks(table: pd.DataFrame) -> dict[str, Any]:
    """Return which marks the main table has: its explanations leave out the others."""
    chosen = table[table["chosen_on_val"]]
    static = chosen[~chosen["dynamic"]]
    reasons = {
        "the weights of mixtures": (static["family"] == "mixture").any(),
        "the settings of models that are still learning": chosen["dynamic"].any(),
        "the epoch of runs that keep their best one": (static["family"] == "network").any(),
        "the epsilons of Laplace models": (static["smoothing"] == "laplace").any(),
    }
    return {
        "by_word": "".join(table["label"][(table["token"] == "char") & (table["counted_token"] == "word")].head(1)),
        "insignificant": bool((table["best_verdict"] == "not significant").any()),
        "no_interval": bool((table["ci_low"].isna() & table["test_bits"].notna()).any()),
        "chosen": ", ".join(reason for reason, holds in reasons.items() if holds),
    }


def _sort_value(column: Column, row: Mapping[str, Any]) -> str:
    """Return the number that rows are sorted by, "" if they are sorted by the text of the cell or it has no value."""
    if not column.is_number:
        return ""
    value = row["ci_high"] - row["ci_low"] if column.name == "ci_low" else row[column.name]
    if not is_missing(value):
        return repr(float(value))
    return "Infinity" if column.cell(row) == "infinite" else ""


def _choices(choices: Mapping[str, float], labels: Mapping[str, str]) -> list[tuple[str, str, float]]:
    """Return what was chosen on val as people read it: the model, what was chosen, and its value."""
    found = []
    for name, value in choices.items():
        what, _, model = name.rpartition(" in ")
        member = what.removeprefix("weight of ")
        said = {
            "dynamic_lr": "learning rate while it predicts",
            "dynamic_decay": "share of the way back to the trained weights at each update",
        }.get(what, what if member == what else f"weight of {labels.get(member, member)}")
        found.append((labels.get(model, model), said, value))
    return found


def _by_model(samples: list[dict[str, Any]], ranked: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return each model's samples by temperature, those of the best model first."""
    grouped = {model: [sample for sample in samples if sample["model"] == model] for model in ranked}
    return {
        model: sorted(its_samples, key=lambda sample: sample["temperature"])
        for model, its_samples in grouped.items()
        if its_samples
    }
