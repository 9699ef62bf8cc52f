"""Figures of text in other scripts: the browser has the fonts, so characters stay and nothing warns."""

import pytest

from seqlm.report.figures.diagrams import graph_figure, partition_figure, strategies_figure, unrolled_figure
from seqlm.report.figures.style import svg_text

FIGURES = {
    "partition": lambda text: partition_figure(text),
    "unrolled": lambda text: unrolled_figure(text),
    "strategies": lambda text: strategies_figure(text),
    "graph": lambda text: graph_figure([text[:1], text[1:3], "a$b", text]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_characters_that_no_font_here_has_are_left_to_the_browser(
    name: str, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    # Chinese, a private character that no font has, and a wide space.
    drawn = svg_text(FIGURES[name]("海\U0010fffd水 sea\u3000"))
    assert not recwarn.list
    assert caplog.messages == []
    assert "海" in drawn
    assert "·" in drawn  # for what is not printable
