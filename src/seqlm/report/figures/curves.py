"""Figures of benchmarks/curves.py: models against the size of their training text, and against time."""

import pandas as pd
from matplotlib.figure import Figure

from seqlm.report.figures.style import label_ends, model_styles, new_figure
from seqlm.score.model_info import NETWORK_NAMES

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
    styles = model_styles(table.drop_duplicates("model").assign(order=1, network=lambda rows: rows["model"]))
    corpora = list(table["corpus"].unique())
    with new_figure(len(corpora), height=0.6 + 2.6 * len(corpora)) as (figure, _):
        for axes, corpus in zip(figure.axes, corpora, strict=True):
            ends = {}
            for model, rows in table[table["corpus"] == corpus].groupby("model", sort=False):
                style = styles[str(model)]
                axes.plot(rows[x], rows[y], **style.points, markersize=3)
                last = rows.loc[rows[x].idxmax()]
                ends[_NAMES.get(str(model), str(model))] = (float(last[x]), float(last[y]), style.color)
            axes.set(xscale="log", ylabel=y_label)
            axes.set_title(corpus, loc="left", fontsize=10)
            label_ends(axes, ends, 1.9)
        figure.axes[-1].set_xlabel(x_label)
    return figure
