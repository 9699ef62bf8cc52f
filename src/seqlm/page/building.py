"""Gathers what the stages reported and renders the page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from seqlm.errors import DataError
from seqlm.figures.book import partition_figure, unrolled_figure
from seqlm.figures.style import save_svg
from seqlm.files import read_csv, read_json, read_text
from seqlm.surprisal import passage_html

_TOP_ROWS = 10
_PARTITIONED, _UNROLLED = 29, 9
"""Characters that the drawings of the text show."""


@dataclass(frozen=True)
class Sources:
    """The report folders of the stages."""

    corpus: Path
    preprocess: Path
    vocab: Path
    ngrams: Path
    sine: Path
    evaluate: Path
    details: Path
    generate: Path
    gradients: Path
    book: Path


def inline_svg(path: Path, title: str) -> Markup:
    """Return an SVG file as a piece of HTML with a name for screen readers and ids of its own."""
    text = read_text(path)
    start = text.find("<svg")
    if start < 0:
        raise DataError(f"{path}: not an SVG figure: run the stage that writes it again")
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", f"{path.parent.name}-{path.stem}")
    # Two figures on one page must not share ids.
    text = re.sub(r'\bid="', f'id="{prefix}-', text[start:])
    text = re.sub(r'(url\(#|xlink:href="#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1))


def draw_text(lines: pd.Series, folder: Path) -> None:
    """Draw the book's figures 8.3.1 and 8.4.2 from the first words of the text."""
    text = " ".join(str(line) for line in lines if not pd.isna(line) and str(line).strip())
    save_svg(partition_figure(text[:_PARTITIONED]), folder / "partition.svg")
    save_svg(unrolled_figure(text[:_UNROLLED]), folder / "unrolled.svg")


def build_page(sources: Sources, title: str, parity: pd.DataFrame | None) -> str:
    """Return the page as HTML; ``parity`` is None where the corpus is not the book's."""
    return _render("page.html", title=title, **_content(sources), parity=_parity(parity))


def build_surprisal_page(name: str, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a page that shows a text shaded by its surprisal; ``scores`` maps models to what they were measured at."""
    return _render(
        "surprisal.html",
        name=name,
        scores=scores,
        passages=_passages({model: score["passage"] for model, score in scores.items()}),
    )


def _render(template: str, **content: object) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("seqlm.page", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = _number
    environment.globals["figure"] = inline_svg
    return environment.get_template(template).render(**content)


def _content(sources: Sources) -> dict[str, Any]:
    table = read_csv(sources.evaluate / "table.csv")
    frequent = read_csv(sources.ngrams / "word" / "frequencies.csv")
    return {
        "corpus": read_json(sources.corpus),
        "splits": _records(read_csv(sources.preprocess / "splits.csv")),
        "vocabs": {kind: read_json(sources.vocab / kind / "metrics.json") for kind in ("char", "word")},
        "table": _records(table),
        "headline": _headline(table),
        "choices": read_json(sources.evaluate / "choices.json"),
        "smoothings": _best_smoothings(table),
        "calibration": read_json(sources.evaluate / "calibration.json"),
        "passages": _passages(read_json(sources.details / "passages.json")),
        "frequent": {n: _records(rows.head(_TOP_ROWS)) for n, rows in frequent.groupby("n")},
        "ngram_metrics": {kind: read_json(sources.ngrams / kind / "metrics.json") for kind in ("char", "word")},
        "min_freq": _records(read_csv(sources.ngrams / "word" / "min_freq.csv")),
        "storage": {kind: _records(read_csv(sources.ngrams / kind / "storage.csv")) for kind in ("char", "word")},
        "gradients": read_json(sources.gradients / "metrics.json"),
        "sine": read_json(sources.sine / "metrics.json"),
        "taus": _records(read_csv(sources.sine / "tau.csv")),
        "samples": _by_model(read_json(sources.generate / "samples.json"), list(table["model"])),
        "folders": sources,
    }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
    ]


def _headline(table: pd.DataFrame) -> dict[str, Any]:
    """Return the best model on test, the one behind it, and the best that only counts."""
    ranked = table.dropna(subset=["test_bits"])
    best = ranked.iloc[0]
    counting = ranked[ranked["model"].str.match("^(char|word)-")]
    return {
        "model": best["model"],
        "bits": best["test_bits"],
        "perplexity": best["test_perplexity"],
        "verdict": best["against_next"],
        "next": ranked.iloc[1]["model"] if len(ranked) > 1 else None,
        "counting": None if counting.empty else counting.iloc[0]["model"],
        "counting_bits": None if counting.empty else counting.iloc[0]["test_bits"],
    }


def _best_smoothings(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return for each kind of token the best model of each smoothing on test, model and test_bits, the better first."""
    counting = table[table["model"].str.match(r"^(char|word)-(laplace|kneser-ney)-\d+$")].dropna(subset=["test_bits"])
    best = counting.groupby(counting["model"].str.replace(r"-\d+$", "", regex=True), sort=False).head(1)
    return {str(kind): _records(rows[["model", "test_bits"]]) for kind, rows in best.groupby("kind")}


def _passages(found: dict[str, Any]) -> dict[str, Markup]:
    return {name: Markup(passage_html(value)) for name, value in found.items()}


def _by_model(samples: list[dict[str, Any]], ranked: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return each model's samples, the model that predicts test best first."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        grouped.setdefault(sample["model"], []).append(sample)
    return {model: grouped[model] for model in ranked if model in grouped}


def _parity(parity: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    return None if parity is None else _records(parity)


def _number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table: thousands parted, infinite or missing ones as a dash."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
