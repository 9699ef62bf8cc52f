"""Gathers what the page shows: what needs more than a look at a report, which the template reads
itself."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from seqlm.core.files import read_csv, read_json, read_text
from seqlm.core.layout import Layout
from seqlm.pipeline.report import findings
from seqlm.pipeline.report.captions import caption_facts
from seqlm.pipeline.report.drawing import CORPORA, MAX_RUNS, extreme_models
from seqlm.pipeline.report.formats import decimals, percent, plus_minus, unbroken
from seqlm.pipeline.report.main_table import (
    CELLS,
    STILL_LEARNING,
    labels_by_model,
    read_main_table,
    table_text,
)
from seqlm.pipeline.report.passages import align, shaded_line
from seqlm.pipeline.report.rendering import render, render_page
from seqlm.pipeline.train.configs import run_names
from seqlm.vocab.corpus import SPLITS
from seqlm.vocab.kinds import ALL
from seqlm.vocab.vocabulary import Vocab

_SENTENCE_LENGTH = 56
"""Characters of the test split on the first screen."""
_SOURCES = ("page.css", "page.js", "surprisal_view.js")

Content = dict[str, Any]
"""Variables of the page's template."""


def build_page(layout: Layout, comparison: Mapping[str, pd.DataFrame]) -> str:
    """The page as HTML, with the figures of :func:`seqlm.pipeline.report.drawing.draw_all`.

    ``comparison``: tables of :mod:`seqlm.pipeline.report.book_comparison`, empty for other corpora.
    Raises DataError if a report is missing or broken.
    """
    table = read_main_table(layout)

    def report(stage: str, *parts: str) -> Any:
        path = layout.reports(stage, *parts)
        return read_json(path) if path.suffix == ".json" else read_csv(path)

    samples = report("generate", "samples.json")
    content: Content = {
        "report": report,
        "figure": lambda name, title: inline_svg(layout.figure(name), title),
        "label": labels_by_model(table).get,
        "facts": caption_facts(layout, table),
        "findings": findings.all_findings(table),
        "samples": choose_samples(samples, findings.chart_rows(table)),
        "book": comparison["printed"].to_dict("records"),
        "runs_left_out": max(len(run_names(layout.configs)) - MAX_RUNS, 0),
    }
    for section in (_text, _models, _surprise, _classes, _sine):
        content |= section(layout, table)
    return render_page("page.html", _SOURCES, **content)


def build_surprisal_page(
    name: str, scores: Mapping[str, Mapping[str, Any]], remarks: Sequence[str]
) -> str:
    """A page that shows a text shaded by its surprisal.

    ``scores``: model -> result of :func:`seqlm.pipeline.score.excerpts.page_content`.
    ``remarks``: what a reader should know about the text.
    """
    return render_page(
        "surprisal.html",
        _SOURCES,
        name=name,
        scores=scores,
        remarks=remarks,
        passages=align({model: score["passage"] for model, score in scores.items()}),
        pair=[*scores, ""][:2],
        label=str,
    )


def build_summary(layout: Layout) -> str:
    """The models of the chart, the statements and the main table, as plain text."""
    table = read_main_table(layout)
    return render(
        "summary.txt",
        corpus=read_json(layout.corpus_record),
        preprocess=read_json(layout.reports("preprocess", "summary.json")),
        chart=findings.chart_text(table),
        findings=findings.all_findings(table),
        table=table_text(table),
        has_choices=table["chosen_on_val"].any(),
        share=scored_share(layout),
    )


def inline_svg(path: Path, title: str) -> Markup:
    """An SVG file as HTML, with a name for screen readers and ids that no other figure has."""
    svg = read_text(path)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</defs>\s*", "", svg, count=1, flags=re.DOTALL)  # in page.css
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", path.stem)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def scored_share(layout: Layout) -> str:
    """How much of each split was scored, "" if it was all."""
    # The first model is static, so it was scored on all splits.
    first = next(iter(read_json(layout.reports("evaluate", "metrics.json")).values()))
    shares = {split: first[split]["scored_share"] for split in SPLITS}
    if set(shares.values()) == {1}:
        return ""
    listed = ", ".join(f"{share:.2%} of {split}" for split, share in shares.items())
    return f"scored: {listed}, in evenly spaced passages"


def _text(layout: Layout, _: pd.DataFrame) -> Content:
    """The corpus, its splits and vocabularies, and warnings about them."""
    corpus, vocab = read_json(layout.corpus_record), Vocab.load(layout.vocab("char"), "char")
    return {
        "corpus": corpus,
        "has_curves": corpus["name"] in CORPORA,
        "letters": vocab.normalise == "letters",
        "num_test_chars": vocab.splits["test"].num_chars,
        "preprocess": read_json(layout.reports("preprocess", "summary.json")),
        "vocabs": [
            {"noun": kind.noun, "has_unknown": kind.has_unknown}
            | read_json(layout.reports("vocab", name, "summary.json"))
            for name, kind in ALL.items()
        ],
    }


def _models(layout: Layout, table: pd.DataFrame) -> Content:
    """The chart, the questions and the main table."""
    from_words = table[(table["token"] == "char") & (table["counted_token"] == "word")]
    return {
        "models": table,
        "still_learning": STILL_LEARNING,
        "short": findings.short_text_size(table),
        "chart": findings.chart_rows(table).to_dict("records"),
        "cells": CELLS,
        "share": scored_share(layout),
        "by_word": "".join(from_words["label"].head(1)),
    }


def _surprise(layout: Layout, table: pd.DataFrame) -> Content:
    """The test text under several models."""
    passages = align(read_json(layout.passages))
    text, costs = passages["text"], passages["models"]
    showcase = findings.showcase_models(costs, table)
    models = dict.fromkeys([*table["model"].head(1), *showcase, *costs])
    return {
        "passages": passages,
        "pair": [*(model for model in models if model in costs), ""][:2],
        "sentence": [
            (model, *shaded_line(text, costs[model], _SENTENCE_LENGTH)) for model in showcase
        ],
    }


def choose_samples(samples: list[Content], chart: pd.DataFrame) -> dict[str, list[Content]]:
    """Samples after the first prefix, by temperature, of three models of the chart.

    These are the two best models and the most overfitted one.
    """
    shown = [sample for sample in samples if sample["prefix"] == samples[0]["prefix"]]
    shown.sort(key=lambda sample: sample["temperature"])
    chart = chart[chart["model"].isin([sample["model"] for sample in shown])]
    names, overfitted = chart["model"], findings.most_overfitted_row(chart)["model"]
    models = list(dict.fromkeys([*names[:2], *overfitted, *names]))[:3]
    return {model: [sample for sample in shown if sample["model"] == model] for model in models}


def _classes(layout: Layout, table: pd.DataFrame) -> Content:
    """Which classes of characters surprise the models."""
    classes = read_csv(layout.reports("evaluate", "classes.csv"))
    models = extreme_models(classes["model"], table)
    by_class = classes.groupby(["token_class", "share"], sort=False)
    rows = [
        [name, percent(share), *map(decimals, rows.set_index("model")["bits"][models])]
        for (name, share), rows in by_class
    ]
    return {"by_class": list(map(labels_by_model(table).get, models)), "classes": rows}


def _sine(layout: Layout, _: pd.DataFrame) -> Content:
    taus = read_csv(layout.reports("sine", "tau.csv"))
    return {
        "taus": [
            [row.tau, str(row.noise), unbroken(plus_minus(row.rmse, row.deviation, 3))]
            for row in taus.itertuples()
        ]
    }
