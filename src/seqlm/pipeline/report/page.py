"""Gathers what the stages reported and renders the page."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from seqlm.core.files import read_csv, read_json, read_text
from seqlm.core.layout import Layout
from seqlm.pipeline.evaluate.columns import COLUMNS, describe_share, table_groups, table_text
from seqlm.pipeline.report import statements
from seqlm.pipeline.report.captions import all_captions
from seqlm.pipeline.report.drawing import CORPORA, MAX_RUNS, extreme_models
from seqlm.pipeline.report.formats import number_or_infinite, percent, plus_minus, unbroken
from seqlm.pipeline.report.passages import align, shaded_line
from seqlm.pipeline.report.rendering import render
from seqlm.pipeline.train.configs import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import ALL
from seqlm.vocab.vocabulary import Vocab

_TOP_ROWS = 10
_SENTENCE_LENGTH = 56
"""Characters of the test split on the first screen."""
_MAX_COMPRESSED = 1_000_000
"""Largest number of test characters that are compressed for comparison."""
_SOURCES = ("page.css", "page.js", "surprisal_view.js")

Content = dict[str, Any]
"""Variables of the page's template."""


def build_page(layout: Layout, comparison: Mapping[str, pd.DataFrame]) -> str:
    """The page as HTML, with the figures of :func:`seqlm.pipeline.report.drawing.draw_all`.

    ``comparison``: tables of :mod:`seqlm.pipeline.report.book_comparison`, empty for other corpora.
    Raises DataError if a report is missing or broken.
    """
    table = statements.read_main_table(layout)
    sections = (_corpus, _models, _surprise, _samples, _contexts, _text, _ngrams, _studies)
    content: Content = {}
    for section in sections:
        content |= section(layout, table)

    def figure(name: str, alternative: str) -> Markup:
        return inline_svg(layout.figure(name), alternative)

    book = comparison["printed"].to_dict("records")
    return render("page.html", _SOURCES, **content, book=book, figure=figure)


def build_surprisal_page(
    name: str, scores: Mapping[str, Mapping[str, Any]], remarks: Sequence[str]
) -> str:
    """A page that shows a text shaded by its surprisal.

    ``scores``: model -> result of :func:`seqlm.pipeline.score.excerpts.page_content`.
    ``remarks``: what a reader should know about the text.
    """
    return render(
        "surprisal.html",
        _SOURCES,
        name=name,
        scores=[[model, *_score_cells(score)] for model, score in scores.items()],
        remarks=remarks,
        passages=align({model: score["passage"] for model, score in scores.items()}),
        pair=[*scores, ""][:2],
        label=str,
    )


def _score_cells(score: Mapping[str, Any]) -> list[Any]:
    perplexity = number_or_infinite(score["perplexity"], 2)
    bits = number_or_infinite(score["bits_per_character"], 3)
    return [perplexity, bits, score["tokens"], percent(score["unknown_share"], 1)]


def build_summary(layout: Layout) -> str:
    """The models of the chart, the statements and the main table, as plain text."""
    table = statements.read_main_table(layout)
    text = f"{statements.summary_text(table)}\nAll models:\n\n{table_text(table, _share(layout))}"
    replaced = statements.replaced_corpus(read_json(layout.corpus_record))
    warnings = [f"Warning: {warning}." for warning in _preprocess(layout)["warnings"] or ()]
    above = [textwrap.fill(line, width=100) for line in (replaced, *warnings) if line]
    return "\n\n".join([*above, text])


def inline_svg(path: Path, title: str) -> Markup:
    """An SVG file as HTML, with a name for screen readers and ids that no other figure has."""
    svg = read_text(path)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</defs>\s*", "", svg, count=1, flags=re.DOTALL)  # in page.css
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", path.stem)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def _labels(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["model"], table["label"], strict=True))


def _share(layout: Layout) -> str:
    return describe_share(read_json(layout.reports("evaluate", "metrics.json")))


def _corpus(layout: Layout, _: pd.DataFrame) -> Content:
    """Everything above the first section: the corpus, and warnings about it."""
    corpus, vocab = read_json(layout.corpus_record), Vocab.load(layout.vocab("char"), "char")
    return {
        "corpus": corpus,
        "names_itself": corpus["name"].replace("_", " ").lower() in corpus["description"].lower(),
        "has_curves": corpus["name"] in CORPORA,
        "replaced": statements.replaced_corpus(corpus),
        "letters": vocab.normalise == "letters",
        "cleaning": _preprocess(layout)["warnings"] or (),
        "warnings": [text for vocab in _vocabs(layout) for text in vocab["warnings"] or ()],
    }


def _preprocess(layout: Layout) -> Content:
    return dict(read_json(layout.reports("preprocess", "summary.json")))


def _vocabs(layout: Layout) -> list[Content]:
    return [
        {"noun": kind.noun, "has_unknown": kind.has_unknown}
        | read_json(layout.reports("vocab", name, "summary.json"))
        for name, kind in ALL.items()
    ]


def _models(layout: Layout, table: pd.DataFrame) -> Content:
    """The chart, the statements, the questions and the main table."""
    corpus, vocab = read_json(layout.corpus_record), Vocab.load(layout.vocab("char"), "char")
    ids = load_split(layout.corpus("char"), "test")[:_MAX_COMPRESSED]
    test = vocab.join(vocab.decode(ids.tolist()))
    chart = statements.chart_rows(table)
    from_words = table[(table["token"] == "char") & (table["counted_token"] == "word")]
    return {
        "statements": {
            subject: unbroken(text) for subject, text in statements.all_statements(table).items()
        },
        "margin": statements.interval_margin(table.iloc[0]),
        "faq": statements.faq_facts(table, corpus["name"], test),
        "chart": ", ".join(f"{row.label} {row.test_bits:.2f}" for row in chart.itertuples()),
        "groups": table_groups(table),
        "columns": [column for column in COLUMNS if column.heading],
        "share": _share(layout),
        "by_word": "".join(from_words["label"].head(1)),
        "chapter": bool(table["as_in_chapter"].any()),
        "label": _labels(table).get,
    }


def _surprise(layout: Layout, table: pd.DataFrame) -> Content:
    """The test text under several models."""
    passages = align(read_json(layout.passages))
    text, costs = passages["text"], passages["models"]
    showcase, labels = statements.showcase_models(costs, table), _labels(table)
    models = dict.fromkeys([*table["model"].head(1), *showcase, *costs])
    return {
        "passages": passages,
        "pair": [*(model for model in models if model in costs), ""][:2],
        "sentence": [
            (labels[model], *shaded_line(text, costs[model], _SENTENCE_LENGTH))
            for model in showcase
        ],
    }


def _samples(layout: Layout, table: pd.DataFrame) -> Content:
    samples = read_json(layout.reports("generate", "samples.json"))
    return {"samples": choose_samples(samples, statements.chart_rows(table))}


def choose_samples(samples: list[Content], chart: pd.DataFrame) -> dict[str, list[Content]]:
    """Samples after the first prefix, by temperature, of three models of the chart.

    These are the two best models and the most overfitted one.
    """
    written = [sample for sample in samples if sample["prefix"] == samples[0]["prefix"]]
    written.sort(key=lambda sample: sample["temperature"])
    has_samples = chart["model"].isin([sample["model"] for sample in written])
    names = chart["model"][has_samples]
    overfitted = statements.most_overfitted_row(chart)["model"]
    candidates = [*names[:2], *overfitted[overfitted.isin(names)], *names]
    models = list(dict.fromkeys(candidates))[:3]
    return {model: [sample for sample in written if sample["model"] == model] for model in models}


def _contexts(layout: Layout, table: pd.DataFrame) -> Content:
    """Which classes of characters surprise the models, and the captions of all figures."""
    classes = read_csv(layout.reports("evaluate", "classes.csv"))
    models, labels = extreme_models(set(classes["model"]), table), _labels(table)
    rows = []
    for token_class, scores in classes.groupby("token_class", sort=False):
        bits = scores.set_index("model")["bits"][models]
        share = percent(scores["share"].iloc[0])
        rows.append([token_class, share, *(f"{value:.2f}" for value in bits)])
    return {
        "captions": all_captions(layout, table),
        "by_class": [labels[model] for model in models],
        "classes": rows,
    }


def _text(layout: Layout, _: pd.DataFrame) -> Content:
    splits = read_csv(layout.reports("preprocess", "splits.csv"))
    columns = ["split", "lines", "characters", "words"]
    return {
        "splits": splits[columns].to_numpy().tolist(),
        "vocabs": _vocabs(layout),
        "preprocess": _preprocess(layout),
    }


def _ngrams(layout: Layout, _: pd.DataFrame) -> Content:
    folder = layout.reports("ngrams", "word")
    frequencies = read_csv(folder / "frequencies.csv")
    return {
        "words": read_json(folder / "summary.json"),
        "frequent": {
            n: rows[["ngram", "count"]].head(_TOP_ROWS).to_numpy().tolist()
            for n, rows in frequencies.groupby("n")
        },
    }


def _studies(layout: Layout, _: pd.DataFrame) -> Content:
    """Learning curves, gradients and the noisy sine."""
    taus = read_csv(layout.reports("sine", "tau.csv"))
    return {
        "runs_left_out": max(len(run_names(layout.configs)) - MAX_RUNS, 0),
        "gradients": read_json(layout.reports("gradients", "summary.json")),
        "sine": read_json(layout.reports("sine", "summary.json")),
        "taus": [
            [row.tau, str(row.noise), unbroken(plus_minus(row.rmse, row.deviation, 3))]
            for row in taus.itertuples()
        ],
    }
