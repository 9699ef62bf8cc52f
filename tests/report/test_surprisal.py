"""A passage as HTML."""

import math

import numpy as np

from seqlm.report.page import passage_html
from seqlm.score.surprisal_view import passage
from seqlm.vocab.kinds import token_kind


def test_a_passage_shades_scored_tokens_and_shows_markup_as_text() -> None:
    found = passage(token_kind("word"), ["<b>", "&", "x"], np.array([math.log(2), np.inf]), 100)
    # The first token is not scored, so it has no shade.
    assert passage_html(found) == (
        '<i title="not scored">&lt;b&gt; </i><i class=s0 title=1.0>&amp; </i><i class=s9 title=infinite>x </i>'
    )
