"""The page."""

import base64
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from seqlm.report.figures import style
from seqlm.report.page import build_surprisal_page, inline_svg
from seqlm.score.passage import passage
from seqlm.vocab.kinds import token_kind
from smoke import ROOT

PAGE = ROOT / "reports" / "index.html"


class Outline(HTMLParser):
    """Collects elements with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def values(self, name: str, tag: str = "") -> list[str]:
        """Return the values of an attribute, in elements of one kind or of all."""
        found = [attributes.get(name, "") for element, attributes in self.elements if tag in ("", element)]
        return [value for value in found if value]


def test_the_page_loads_nothing_and_works_with_a_screen_reader() -> None:
    outline = Outline()
    outline.feed(PAGE.read_text(encoding="utf-8"))
    assert [address for name in ("src", "href", "action") for address in outline.values(name) if "//" in address] == []
    assert PAGE.stat().st_size < 3_000_000
    tags, ids = [tag for tag, _ in outline.elements], outline.values("id")
    headings = [tag for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert headings.index("h1") == 0
    assert headings.count("h1") == 1
    assert len(outline.values("aria-label", "svg")) == tags.count("svg")
    assert {link[1:] for link in outline.values("href", "a") if link.startswith("#")} <= set(ids)
    assert len(ids) == len(set(ids))


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text('<?xml version="1.0"?><svg><g id="a"/><use xlink:href="#a"/></svg>')
    found = str(inline_svg(tmp_path / "x.svg", '"><script>alert(1)</script>'))
    assert "<script>" not in found
    assert 'id="x-a"' in found
    assert 'xlink:href="#x-a"' in found


def test_a_passage_with_markup_is_only_data() -> None:
    values = {"perplexity": 2.0, "bits_per_character": 1.0, "tokens": 6, "unknown_share": 0.0, "separator_bits": 0.0}
    shown = passage(token_kind("word"), ["</script><b>", "&"], np.array([math.log(2)]), 100)
    page = build_surprisal_page("x", {"a": values | {"passage": shown}}, [])
    assert "<b>" not in page
    data = re.search(r'<script type="application/json" id="passages">(.*?)</script>', page)
    assert data is not None
    assert json.loads(data[1])["text"] == "</script><b> &"


def test_the_policy_names_the_scripts_and_styles_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    parts = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    hashes = {base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts}
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert "unsafe" not in policy
    assert not re.search(r"<[^>]* style=", page)


def test_text_can_be_read_on_every_shade_and_figures_on_light_and_dark_paper() -> None:
    css = ROOT.joinpath("src", "seqlm", "report", "templates", "page.css").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = {}
    for names, look in re.findall(r"((?:\.[sab]\d,? )+)\{ (.*?) \}", css):
        for name in re.findall(r"\w+", names):
            values = re.findall(r"([a-z-]+): light-dark\((#\w+), (#\w+)\)", look)
            found.setdefault(name, {}).update({key: colours for key, *colours in values})
    assert len(found) == 20
    for name, look in found.items():  # on light paper, then on dark paper
        assert min(map(contrast, look["color"], look["background"])) >= 4.5, name
    papers = re.findall(r"--paper: light-dark\((#\w+), (#\w+)\)", css)[0]
    colours = (
        style.GREY, style.MAGENTA, style.PURPLE, style.OLIVE, style.BLUE, style.GREEN, style.VERMILION,
    )  # fmt: skip
    assert [colour for colour in colours if min(contrast(colour, paper) for paper in papers) < 3] == []


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#16171a``, as the guidelines for accessibility define it."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) > 4 else "".join(2 * digit for digit in colour[1:])
        parts = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
                 for value in (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))]  # fmt: skip
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
