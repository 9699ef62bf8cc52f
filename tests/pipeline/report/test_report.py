"""Parts of pages: figures and passages as text and data, and colours that can be read."""

import json
import math
import re
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb

from seqlm.pipeline.report.figures import style
from seqlm.pipeline.report.page import build_surprisal_page, inline_svg
from seqlm.pipeline.score.excerpts import passage
from seqlm.vocab.kinds import token_kind
from smoke import ROOT


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text(
        '<?xml version="1.0"?><svg><defs><style>svg{}</style></defs><g id="a"/><use xlink:href="#a"/></svg>'
    )
    found = str(inline_svg(tmp_path / "x.svg", '"><script>alert(1)</script>'))
    assert "<script>" not in found
    assert "<style>" not in found  # it would apply to the whole page
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


def test_tokens_that_dvc_writes_into_its_page_of_charts_are_text() -> None:
    page = (ROOT / ".dvc" / "plots" / "page.html").read_text(encoding="utf-8")
    before, _, after = page.partition("{plot_divs}")
    assert before.rstrip().endswith("<plaintext>")  # which nothing ends
    assert after.strip() == ""


def test_text_can_be_read_on_every_shade_and_figures_on_light_and_dark_paper() -> None:
    css = ROOT.joinpath("src/seqlm/pipeline/report/templates/page.css").read_text(encoding="utf-8")
    looks: dict[str, dict[str, list[str]]] = {}
    for names, look in re.findall(r"((?:\.[sab]\d,? )+)\{ (.*?) \}", css):
        for name in re.findall(r"\w+", names):
            values = re.findall(r"([a-z-]+): light-dark\((#\w+), (#\w+)\)", look)
            looks.setdefault(name, {}).update({key: colours for key, *colours in values})
    assert len(looks) == 20
    for name, look in looks.items():  # on light paper, then on dark paper
        assert min(map(contrast, look["color"], look["background"])) >= 4.5, name
    papers = re.findall(r"--paper: light-dark\((#\w+), (#\w+)\)", css)[0]
    colours = [getattr(style, name) for name in ["GREY", "MAGENTA", "PURPLE", "OLIVE", "BLUE", "GREEN", "VERMILION"]]
    assert [colour for colour in colours if min(contrast(colour, paper) for paper in papers) < 3] == []


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#16171a``, as the guidelines for accessibility define it."""
    values = np.array([to_rgb(one), to_rgb(other)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))
