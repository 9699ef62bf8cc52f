"""Figures of benchmarks/curves.py: models against the size of their training text, and against time."""

from itertools import cycle

import pandas as pd
from matplotlib.figure import Figure

from seqlm.models.names import NETWORK_NAMES
from seqlm.report.figures.style import LINES, MARKERS, LineStyle, model_styles, new_figure

CORPORA = ("time_machine", "tiny_shakespeare")
"""The texts of these figures; the page of another text leaves them out."""


_NAMES = NETWORK_NAMES | {
    "char-kneser-ney": "character n-grams",
    "char-by-word-kneser-ney": "word n-grams",
    "lstm+n-gram": "LSTM + n-grams",
}


def data_figure(table: pd.DataFrame) -> Figure:
    """Draw bits per character on test against characters of training text, one panel for each corpus.

    Columns corpus, model, family, train_chars, test_bits.
    """
    return _curves(table, "train_chars", "test_bits", "characters of training text", "bits per character on test")


def time_figure(table: pd.DataFrame) -> Figure:
    """Draw bits per character on val against seconds of training, one panel for each corpus.

    Columns corpus, model, seconds, val_bits; all models are networks.
    """
    networks = table.assign(family="network")
    return _curves(networks, "seconds", "val_bits", "processor seconds of training", "bits per character on val")


def _curves(table: pd.DataFrame, x: str, y: str, x_label: str, y_label: str) -> Figure:
    # Every n-gram model is of an order above 0, and a network has the name of its kind.
    models = table.drop_duplicates("model").assign(order=1, network=lambda rows: rows["model"])
    looks = zip(model_styles(models).items(), cycle(LINES), cycle(MARKERS), strict=False)
    styles = {model: LineStyle(style.color, *look) for (model, style), *look in looks}
    corpora = list(table["corpus"].unique())
    with new_figure(len(corpora), height=2.5 * len(corpora), legend=2) as (figure, _):
        for axes, corpus in zip(figure.axes, corpora, strict=True):
            for model, rows in table[table["corpus"] == corpus].groupby("model", sort=False):
                name = _NAMES.get(str(model), str(model))
                axes.plot(rows[x], rows[y], **styles[str(model)].points, markersize=3.5, label=name)
            axes.set(xscale="log", ylabel=y_label, title=corpus)
        figure.axes[-1].set_xlabel(x_label)
    return figure
