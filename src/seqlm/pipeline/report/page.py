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
from seqlm.pipeline.report import findings
from seqlm.pipeline.report.captions import all_captions, unbroken
from seqlm.pipeline.report.drawing import CORPORA, MAX_RUNS, contrasting
from seqlm.pipeline.report.passages import align, shaded_line
from seqlm.pipeline.report.rendering import render
from seqlm.preprocess.cleaning import Letters, decoding_warnings
from seqlm.train.settings import run_names
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import ALL
from seqlm.vocab.vocabulary import Vocab

_TOP_ROWS = 10
_SENTENCE = 56
"""Characters of test that the first screen shows."""
_COMPRESSED = 1_000_000
"""Characters of test that are compressed for comparison, at most."""
_SOURCES = ("page.css", "page.js", "surprisal_view.js")


def build_page(layout: Layout, parity: Mapping[str, pd.DataFrame]) -> str:
    """Return the page as HTML; ``parity`` has the tables of :mod:`seqlm.pipeline.report.parity`,
    empty for other corpora.

    It contains the figures that :func:`seqlm.pipeline.report.drawing.draw_all` has drawn. Raises
    DataError if a report is missing or broken.
    """

    def figure(name: str, alternative: str) -> Markup:
        return inline_svg(layout.figure(name), alternative)

    return render(
        "page.html",
        _SOURCES,
        **_content(layout),
        parity=parity["printed"].to_dict("records"),
        figure=figure,
    )


def build_surprisal_page(
    name: str, scores: Mapping[str, Mapping[str, Any]], remarks: Sequence[str]
) -> str:
    """Return a page that shows a text shaded by its surprisal.

    ``scores``: model -> what :func:`seqlm.pipeline.score.shown_text.page_content` returns for it.
    ``remarks``: what a reader should know about the text.
    """
    passages, pair = (
        align({model: score["passage"] for model, score in scores.items()}),
        [*scores, ""][:2],
    )
    rows = [[model, *_shown(score)] for model, score in scores.items()]
    return render(
        "surprisal.html",
        _SOURCES,
        name=name,
        scores=rows,
        remarks=remarks,
        passages=passages,
        pair=pair,
        label=str,
    )


def _shown(score: Mapping[str, Any]) -> list[Any]:
    numbers = ((score["perplexity"], 2), (score["bits_per_character"], 3))
    shown = ["infinite" if value is None else f"{value:,.{digits}f}" for value, digits in numbers]
    return [*shown, score["tokens"], _percent(score["unknown_share"], 1)]


def build_summary(layout: Layout) -> str:
    """Return the models of the chart, the findings, and the main table as plain text."""
    table = findings.read_main_table(layout)
    share = describe_share(read_json(layout.reports("evaluate", "metrics.json")))
    text = f"{findings.summary_text(table)}\nAll models:\n\n{table_text(table, share)}"
    replaced = textwrap.fill(findings.replaced_corpus(read_json(layout.corpus_record)), width=100)
    return f"{replaced}\n\n{text}" if replaced else text


def inline_svg(path: Path, title: str) -> Markup:
    """Return an SVG file as a piece of HTML with a name for screen readers and ids that begin with
    the file's name."""
    text = read_text(path)
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", path.stem)
    # Two figures on one page must not share ids.
    text = re.sub(r'\bid="', f'id="{prefix}-', text[text.index("<svg") :])
    text = re.sub(
        r"<defs>\s*<style.*?</defs>\s*", "", text, count=1, flags=re.DOTALL
    )  # page.css has it
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", text)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def _content(layout: Layout) -> dict[str, Any]:
    """Return what the page shows besides its figures, by the names that its template knows."""
    words, preprocessed = layout.reports("ngrams", "word"), layout.reports("preprocess")
    table, corpus = findings.read_main_table(layout), read_json(layout.corpus_record)
    passages, runs, charted = (
        align(read_json(layout.passages)),
        run_names(layout.configs),
        findings.highlights(table),
    )
    labels: dict[str, str] = table.set_index("model")["label"].to_dict()
    vocab = Vocab.load(layout.vocab("char"), "char")
    test = vocab.join(
        vocab.decode(load_split(layout.corpus("char"), "test", mmap=True)[:_COMPRESSED].tolist())
    )
    vocabs = [
        {"noun": kind.noun, "has_unknown": kind.has_unknown}
        | read_json(layout.reports("vocab", name, "summary.json"))
        for name, kind in ALL.items()
    ]
    shown = findings.three(passages["models"], table)
    pair = dict.fromkeys([*table["model"].head(1), *shown, *passages["models"]])
    classes = read_csv(layout.reports("evaluate", "classes.csv"))
    by_class = contrasting(set(classes["model"]), table)
    frequencies, taus = (
        read_csv(words / "frequencies.csv"),
        read_csv(layout.reports("sine", "tau.csv")),
    )
    splits, cleaned = (
        read_csv(preprocessed / "splits.csv"),
        read_json(preprocessed / "summary.json"),
    )
    return {
        "corpus": corpus,
        "names_itself": corpus["name"].replace("_", " ").lower() in corpus["description"].lower(),
        "replaced": findings.replaced_corpus(corpus),
        "findings": {name: unbroken(found) for name, found in findings.all_findings(table).items()},
        "margin": findings.margin(table.iloc[0]),
        "facts": findings.facts(table, corpus["name"], test),
        "letters": vocab.normalise == "letters",
        "sentence": [
            (labels[name], *shaded_line(passages["text"], passages["models"][name], _SENTENCE))
            for name in shown
        ],
        "splits": splits[["split", "lines", "characters", "words"]].to_numpy().tolist(),
        "vocabs": vocabs,
        "frequent": {
            n: rows[["ngram", "count"]].head(_TOP_ROWS).to_numpy().tolist()
            for n, rows in frequencies.groupby("n")
        },
        "words": read_json(words / "summary.json"),
        "groups": table_groups(table),
        "columns": [column for column in COLUMNS if column.heading],
        "highlights": ", ".join(f"{row.label} {row.test_bits:.2f}" for row in charted.itertuples()),
        "share": describe_share(read_json(layout.reports("evaluate", "metrics.json"))),
        "by_word": "".join(
            table["label"][(table["token"] == "char") & (table["counted_token"] == "word")].head(1)
        ),
        "captions": all_captions(layout, table),
        "by_class": [labels[name] for name in by_class],
        "classes": [
            [
                name,
                _percent(rows["share"].iloc[0]),
                *map("{:.2f}".format, rows.set_index("model")["bits"][by_class]),
            ]
            for name, rows in classes.groupby("token_class", sort=False)
        ],
        "cleaning": decoding_warnings(Letters(**cleaned["decoding"]), vocab.normalise),
        "warnings": [warning for each in vocabs for warning in each["warnings"] or ()],
        "runs_left_out": max(len(runs) - MAX_RUNS, 0),
        "passages": passages,
        "pair": [*(name for name in pair if name in passages["models"]), ""][:2],
        "label": labels.get,
        "chapter": bool(table["as_in_chapter"].any()),
        "samples": _samples(read_json(layout.reports("generate", "samples.json")), charted),
        "gradients": read_json(layout.reports("gradients", "summary.json")),
        "sine": read_json(layout.reports("sine", "summary.json")),
        "taus": [
            [row.tau, str(row.noise), unbroken(f"{row.rmse:.3f} ± {row.deviation:.3f}")]
            for row in taus.itertuples()
        ],
        "has_curves": corpus["name"] in CORPORA,
    }


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def _samples(
    samples: list[dict[str, Any]], charted: pd.DataFrame
) -> dict[str, list[dict[str, Any]]]:
    """Return the samples of three models of the chart after the first prefix, by temperature.

    The models are the best ones, and of those that write the same prefix the one that memorised
    most.
    """
    written = [sample for sample in samples if sample["prefix"] == samples[0]["prefix"]]
    names = [
        name for name in charted["model"] if any(sample["model"] == name for sample in written)
    ]
    memorising = [name for name in findings.memoriser(charted)["model"] if name in names]
    written.sort(key=lambda sample: sample["temperature"])
    shown = list(dict.fromkeys([*names[:2], *memorising, *names]))[:3]
    return {model: [one for one in written if one["model"] == model] for model in shown}
