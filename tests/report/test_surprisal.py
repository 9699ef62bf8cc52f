"""A passage as HTML."""

import math

import numpy as np

from seqlm.report.surprisal import passage_html
from seqlm.score.surprisal_view import passage
from seqlm.vocab.kinds.registry import token_kind


def test_a_passage_shows_markup_as_text() -> None:
    found = passage(token_kind("word"), ["<b>", "&", "x"], np.array([math.log(2), np.inf]), 100)
    assert found["bits"] == [None, 1.0, None]
    html = passage_html(found)
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert 'title="1.0 bits"' in html
