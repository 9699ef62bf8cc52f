"""The figure of trainings without clipping, one of which diverges."""

import pandas as pd

from seqlm.report.figures.gradients import unclipped_figure
from seqlm.report.figures.style import svg_text


def test_a_perplexity_near_the_largest_number_is_drawn() -> None:
    row = {"activation": "relu", "clip": "no clip"}
    rows = [row | {"minibatch": n, "norm": 10.0**n, "perplexity": 10.0 ** (60 * n)} for n in range(1, 6)]
    assert "<svg" in svg_text(unclipped_figure(pd.DataFrame(rows)))
