"""The page and the figures on it."""

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqlm.report.figures.diagrams import partition_figure, unrolled_figure
from seqlm.report.figures.plots import highlights_figure, learning_figure
from seqlm.report.figures.style import model_styles, new_figure, svg_text
from seqlm.report.page import inline_svg, passage_html
from seqlm.score.surprisal_view import passage
from seqlm.vocab.kinds import token_kind
from smoke import ROOT

PAGE = ROOT / "reports" / "index.html"
VOID = {"meta", "link", "br", "img", "hr", "input", "path", "use", "rect", "stop"}


class Outline(HTMLParser):
    """Collects headings, ids, links and images, and checks that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.unnamed = 0
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if str(named.get("href", "")).startswith("#") and tag == "a":
            self.links.append(str(named["href"])[1:])
        self.unnamed += tag == "svg" and not named.get("aria-label")
        self.outside += [str(v) for k, v in attributes if k in ("src", "href", "action") and "//" in str(v)]

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def outline() -> Outline:
    found = Outline()
    found.feed(PAGE.read_text(encoding="utf-8"))
    return found


def test_the_page_is_complete_and_loads_nothing(outline: Outline) -> None:
    assert outline.open == []
    assert outline.outside == []
    assert PAGE.stat().st_size < 3_000_000
    assert "<script src" not in PAGE.read_text()


def test_the_page_works_with_a_screen_reader(outline: Outline) -> None:
    assert outline.headings[0] == "h1"
    assert outline.headings.count("h1") == 1
    assert set(outline.headings) <= {"h1", "h2", "h3"}
    assert outline.unnamed == 0
    assert set(outline.links) <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))


def test_equal_figures_give_equal_bytes() -> None:
    def draw() -> str:
        with new_figure() as (figure, axes):
            axes.plot([1, 2], [3, 4], label="line")
            axes.legend()
        return svg_text(figure)

    assert draw() == draw()
    assert "currentColor" in draw()
    assert "#010203" not in draw()
    assert "<dc:date>" not in draw()


def test_figures_accept_models_without_some_values() -> None:
    table = pd.DataFrame(
        {"model": ["a", "b"], "family": "network", "smoothing": None, "order": None, "dynamic": False, "members": None,
         "network": "gru", "train_subset_bits": [1.0, None],
         "test_bits": [2.0, None], "low": [1.9, None], "high": [2.1, None]}
    )  # fmt: skip
    assert "<svg" in svg_text(highlights_figure(table))
    history = pd.DataFrame({"run": ["a"] * 2, "epoch": [1, 2], "train_perplexity": [3.0, 2.0], "val_perplexity": None})
    assert "<svg" in svg_text(learning_figure(history, model_styles(table)))


def test_the_drawings_show_the_given_text() -> None:
    drawn = svg_text(partition_figure("ab cd", num_steps=2, num_offsets=2))
    assert drawn.count(">offset ") == 2
    # "ab cd" in two rows: every letter twice, the space as a visible mark.
    assert [drawn.count(f">{letter}</text>") for letter in ("a", "b", "c", "d", "\u2423")] == [2] * 5
    assert svg_text(unrolled_figure("abc")).count(">b</text>") == 2  # a target, then an input


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text('<?xml version="1.0"?><svg><g id="a"/><use xlink:href="#a"/></svg>')
    found = str(inline_svg(tmp_path / "x.svg", '"><script>alert(1)</script>'))
    assert "<script>" not in found
    assert 'id="x-a"' in found
    assert 'xlink:href="#x-a"' in found


def test_a_passage_shades_scored_tokens_and_shows_markup_as_text() -> None:
    found = passage(token_kind("word"), ["<b>", "&", "x"], np.array([math.log(2), np.inf]), 100)
    # The first token is not scored, so it has no shade.
    assert passage_html(found) == (
        '<i title="not scored">&lt;b&gt; </i><i class=s0 title=1.0>&amp; </i><i class=s9 title=infinite>x </i>'
    )
