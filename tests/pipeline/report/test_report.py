"""Parts of pages: passages under several models, figures, what is data and no markup, and colours that can be read."""

import json
import math
import re
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb

from seqlm.pipeline.report.figures import style
from seqlm.pipeline.report.page import build_surprisal_page, inline_svg
from seqlm.pipeline.report.passages import align, bits_by_character, shaded_line
from seqlm.pipeline.score.excerpts import passage
from seqlm.vocab.kinds import token_kind
from smoke import ROOT

BIT = math.log(2)


def test_the_tokens_of_all_models_are_parts_of_one_text() -> None:
    characters = passage(token_kind("char"), list("cat sat"), np.arange(1, 7) * BIT, 100)
    words = passage(token_kind("word"), ["cat", "sat"], np.array([7.5]) * BIT, 100)
    found = align({"words": words, "lstm": characters})
    assert found["text"] == "cat sat"
    # The first token of each is not scored, and models over words have no cost for the space.
    assert found["models"] == {"words": [[3, None], None, [3, 7.5]], "lstm": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def test_passages_may_have_different_lengths() -> None:
    # A passage of words ends with a whole word, and a text may have words only.
    words = passage(token_kind("word"), ["cat", "sat"], np.array([np.inf]), 5)
    assert align({"words": words}) == {"text": "cat sat", "models": {"words": [[3, None], None, [3, "infinite"]]}}
    characters = passage(token_kind("char"), list("cat sa"), np.ones(5) * BIT, 6)
    shorter = align({"lstm": characters, "words": words})
    assert shorter["models"]["words"] == [[3, None], None, [2, "infinite"]]
    longer = passage(token_kind("char"), list("cat sat on"), np.ones(9) * BIT, 10)
    assert align({"lstm": longer, "words": words})["models"]["words"][3:] == [None, None, None]
    assert align({}) == {"text": "", "models": {}}


def test_the_bits_of_a_token_are_divided_among_its_characters() -> None:
    bits = bits_by_character([[1, None], [2, 3.0], 0.5, "infinite"])
    assert bits == [None, 1.5, 1.5, 0.5, math.inf]
    assert shaded_line("a", [None], 5) == ([("a", "")], 0)


def test_a_line_ends_with_a_whole_word_and_has_the_shades_of_its_bits() -> None:
    # A shade is 1.2 bits wide, and the last one has no end.
    costs = [None, 1.1, 1.2, 30.0, 0.0, "infinite", 1.0, 1.0, 1.0]
    assert shaded_line("a cat sat", costs, 5) == ([("a", ""), (" ", "s0")], 1.1)
    line, _ = shaded_line("a cat sat", costs, 9)
    assert [shade for _, shade in line] == ["", "s0", "s1", "s9", "s0", "s9", "s0", "s0", "s0"]
    assert shaded_line("catsat", [1.0] * 6, 4)[0] == [(character, "s0") for character in "cats"]


def test_names_with_markup_are_shown_as_text(tmp_path: Path) -> None:
    # A style would apply to the whole page, and an id may be that of another figure.
    svg = '<?xml version="1.0"?><svg><defs><style>svg{}</style></defs><g id="a"/><use xlink:href="#a"/></svg>'
    (tmp_path / "x.svg").write_text(svg)
    title, figure = "&#34;&gt;&lt;script&gt;", '><g id="x-a"/><use xlink:href="#x-a"/></svg>'
    assert inline_svg(tmp_path / "x.svg", '"><script>') == f'<svg role="img" aria-label="{title}"{figure}'


def test_a_passage_with_markup_is_only_data() -> None:
    values = {"perplexity": 2.0, "bits_per_character": 1.0, "tokens": 6, "unknown_share": 0.0, "separator_bits": 0.0}
    shown = passage(token_kind("word"), ["</script><b>", "&"], np.array([BIT]), 100)
    page = build_surprisal_page("x", {"a": values | {"passage": shown}}, [])
    assert "<b>" not in page
    (data,) = re.findall(r'<script type="application/json" id="passages">(.*?)</script>', page)
    assert json.loads(data)["text"] == "</script><b> &"


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
