"""Draws every figure of the page from the tables of the stages."""

from collections.abc import Iterator
from itertools import chain

from matplotlib.figure import Figure

from seqlm.core.files import read_csv, read_json, write_text
from seqlm.core.layout import Layout
from seqlm.report.figures import curves, diagrams, plots
from seqlm.report.figures.style import model_styles, svg_text
from seqlm.report.findings import highlights

Drawn = Iterator[tuple[str, Figure]]

_PARTITIONED, _UNROLLED = 29, 9
"""Characters that the drawings of the text show."""


def draw_all(layout: Layout) -> None:
    """Draw every figure into a file of its own; remove figures that are no longer drawn.

    A figure is named after the stage or benchmark whose tables it shows: ``evaluate-highlights``, ``curves-data``.
    Raises DataError if a table is missing or broken.
    """
    # All figures are drawn before the first is written, so that a broken table leaves the files unchanged.
    files = {layout.figure(name): text for name, text in all_figures(layout).items()}
    for path, text in files.items():
        write_text(path, text)
    for folder in {path.parent for path in files}:
        for path in set(folder.glob("*.svg")) - set(files):
            path.unlink()


def all_figures(layout: Layout) -> dict[str, str]:
    """Return every figure as SVG, by its name. Raises DataError if a table is missing or broken."""
    subjects = (_of_text, _of_ngrams, _of_sine, _of_models, _of_gradients, _of_curves)
    return {name: svg_text(figure) for name, figure in chain.from_iterable(draw(layout) for draw in subjects)}


def _of_text(layout: Layout) -> Drawn:
    """Draw the book's figures 8.3.1, 8.4.2, 8.7.1 and 8.7.2 from the first words and tokens of the text."""
    text = " ".join(line for line in read_json(layout.reports("preprocess", "lines.json")) if line.strip())
    first = read_json(layout.reports("gradients", "summary.json"))["text"]
    yield "book-partition", diagrams.partition_figure(text[:_PARTITIONED])
    yield "book-unrolled", diagrams.unrolled_figure(text[:_UNROLLED])
    yield "gradients-strategies", diagrams.strategies_figure(first["beginning"])
    yield "gradients-graph", diagrams.graph_figure(first["tokens"])


def _of_ngrams(layout: Layout) -> Drawn:
    words, chars = layout.reports("ngrams", "word"), layout.reports("ngrams", "char")
    summary = read_json(words / "summary.json")
    fits = {int(n): fit for n, fit in summary["zipf"].items()}
    yield "ngrams-word-zipf", plots.zipf_figure(read_csv(words / "zipf.csv"), fits)
    yield "ngrams-word-growth", plots.growth_figure(read_csv(words / "growth.csv"), summary["heaps_beta"])
    yield "ngrams-char-epsilons", plots.epsilon_figure(read_csv(chars / "epsilons.csv"))


def _of_sine(layout: Layout) -> Drawn:
    folder = layout.reports("sine")
    predictions = read_csv(folder / "predictions.csv")
    steps = {"one_step": "one step ahead", "multi_step": "from its own earlier predictions"}
    ahead = [column for column in predictions.columns if column.startswith("ahead_")]
    titles = {column: f"{column.removeprefix('ahead_')} steps ahead".replace("1 steps", "1 step") for column in ahead}
    noise = read_json(folder / "summary.json")["noise_floor"]
    yield "sine-steps", plots.predictions_figure(predictions, steps)
    yield "sine-ahead", plots.predictions_figure(predictions, titles)
    yield "sine-errors", plots.error_figure(read_csv(folder / "errors.csv"), noise)


def _of_models(layout: Layout) -> Drawn:
    folder = layout.reports("evaluate")
    table, history = read_csv(folder / "table.csv"), read_csv(folder / "history.csv")
    positions, classes = read_csv(folder / "positions.csv"), read_csv(folder / "classes.csv")
    styles, runs = model_styles(table), plots.trained_runs(history, table)
    diagnosed = plots.contrasting(set(classes["model"]), table)
    yield "evaluate-highlights", plots.highlights_figure(highlights(table))
    yield "evaluate-orders", plots.order_figure(read_csv(folder / "orders.csv"), table, styles)
    yield "evaluate-learning", plots.learning_figure(history, styles, runs)
    yield "evaluate-clipping", plots.clipping_figure(history, styles, runs[0])
    yield "evaluate-positions", plots.position_figure(positions, styles, diagnosed)
    yield "evaluate-classes", plots.class_figure(classes, styles, diagnosed)


def _of_gradients(layout: Layout) -> Drawn:
    folder = layout.reports("gradients")
    reach = read_csv(folder / "reach.csv")
    yield "gradients-reach", plots.reach_figure(reach)
    yield "gradients-radius", plots.radius_figure(read_csv(folder / "radius.csv"))
    draws, convergence = read_csv(folder / "truncation.csv"), read_csv(folder / "convergence.csv")
    yield "gradients-truncation", plots.truncation_figure(draws, convergence)
    yield "gradients-trained", plots.trained_figure(read_csv(folder / "trained.csv"))


def _of_curves(layout: Layout) -> Drawn:
    if read_json(layout.corpus_record)["name"] not in curves.CORPORA:
        return
    yield "curves-data", curves.data_figure(read_csv(layout.benchmark("curves_data.csv")))
    yield "curves-time", curves.time_figure(read_csv(layout.benchmark("curves_time.csv")))
