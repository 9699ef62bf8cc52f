"""Draws every figure of the page from the tables of the stages."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from seqlm.core.files import read_csv, read_json, write_text
from seqlm.core.layout import Layout
from seqlm.core.processes import default_processes, map_in_processes
from seqlm.core.progress import Log
from seqlm.report.figures import book, curves, evaluation, gradients, ngrams
from seqlm.report.figures.style import MISSING_GLYPH, model_styles, svg_text, without_font
from seqlm.report.findings import highlights

Drawn = Iterator[tuple[str, Figure]]

_PARTITIONED, _UNROLLED = 29, 9
"""Characters that the drawings of the text show."""


def draw_all(layout: Layout, log: Log, num_processes: int | None = None) -> None:
    """Draw every figure into a file of its own; remove figures that are no longer drawn.

    A figure is named after the stage or benchmark whose tables it shows: ``evaluate-highlights``,
    ``ngrams-word-zipf``, ``curves-data``. Characters of the text that no installed font has are logged.
    The files are the same for any number of processes, by default as many as help.
    Raises DataError if a table is missing or broken.
    """
    # All figures are drawn before the first is written, so that a broken table leaves the files unchanged.
    texts = map_in_processes(_drawn, _figures(layout), num_processes or default_processes())
    figures = {layout.figure(name): text for name, text in texts}
    for path, text in figures.items():
        write_text(path, text)
    for folder in {path.parent for path in figures}:
        for path in set(folder.glob("*.svg")) - set(figures):
            path.unlink()
    text, beginning, tokens = _beginnings(layout)
    if missing := without_font("".join([text, beginning, *tokens])):
        log(
            f"no installed font has {' '.join(missing)}: figures show {MISSING_GLYPH} instead; install a font that has "
            "them, such as Noto, then run `dvc repro --force --single-item report`"
        )


def _drawn(named: tuple[str, Figure]) -> tuple[str, str]:
    """Return a figure's name and its SVG."""
    name, figure = named
    return name, svg_text(figure)


def _figures(layout: Layout) -> Drawn:
    yield from _of_text(layout)
    yield from _of_ngrams(layout)
    yield from _of_sine(layout)
    yield from _of_models(layout)
    yield from _of_gradients(layout)
    yield from _of_truncation(layout)
    yield from _of_curves(layout)


def _of_text(layout: Layout) -> Drawn:
    """Draw the book's figures 8.3.1, 8.4.2, 8.7.1 and 8.7.2 from the first words and tokens of the text."""
    text, beginning, tokens = _beginnings(layout)
    yield "book-partition", book.partition_figure(text)
    yield "book-unrolled", book.unrolled_figure(text[:_UNROLLED])
    yield "gradients-strategies", gradients.strategies_figure(beginning)
    yield "gradients-graph", gradients.graph_figure(tokens)


def _beginnings(layout: Layout) -> tuple[str, str, list[str]]:
    """Return what is drawn of the text: its first characters, those of its tokens, and its first tokens."""
    text = " ".join(line for line in read_json(layout.reports("preprocess", "lines.json")) if line.strip())
    first = read_json(layout.reports("gradients", "summary.json"))["text"]
    return text[:_PARTITIONED], first["beginning"], first["tokens"]


def _of_ngrams(layout: Layout) -> Drawn:
    words, chars = layout.reports("ngrams", "word"), layout.reports("ngrams", "char")
    summary = read_json(words / "summary.json")
    fits = {int(n): fit for n, fit in summary["zipf"].items()}
    yield "ngrams-word-zipf", ngrams.zipf_figure(read_csv(words / "zipf.csv"), fits)
    yield "ngrams-word-growth", ngrams.growth_figure(read_csv(words / "growth.csv"), summary["heaps_beta"])
    yield "ngrams-char-epsilons", ngrams.epsilon_figure(read_csv(chars / "epsilons.csv"))


def _of_sine(layout: Layout) -> Drawn:
    folder = layout.reports("sine")
    predictions = read_csv(folder / "predictions.csv")
    steps = {"one_step": "one step ahead", "multi_step": "from its own earlier predictions"}
    ahead = [column for column in predictions.columns if column.startswith("ahead_")]
    titles = {column: f"{column.removeprefix('ahead_')} steps ahead".replace("1 steps", "1 step") for column in ahead}
    noise = read_json(folder / "summary.json")["noise_floor"]
    yield "sine-steps", book.predictions_figure(predictions, steps)
    yield "sine-ahead", book.predictions_figure(predictions, titles)
    yield "sine-errors", book.error_figure(read_csv(folder / "errors.csv"), noise)


def _of_models(layout: Layout) -> Drawn:
    folder = layout.reports("evaluate")
    table, history = read_csv(folder / "table.csv"), read_csv(folder / "history.csv")
    styles = model_styles(table)
    yield "evaluate-highlights", evaluation.highlights_figure(highlights(table))
    yield "evaluate-orders", ngrams.order_figure(read_csv(folder / "orders.csv"), table, styles)
    yield "evaluate-learning", evaluation.learning_figure(history, styles)
    yield "evaluate-clipping", evaluation.clipping_figure(history, styles)
    yield "evaluate-positions", evaluation.position_figure(read_csv(folder / "positions.csv"), styles)
    yield "evaluate-classes", evaluation.class_figure(read_csv(folder / "classes.csv"), styles)
    yield "evaluate-calibration", evaluation.calibration_figure(read_csv(folder / "calibration.csv"), styles)


def _of_gradients(layout: Layout) -> Drawn:
    folder = layout.reports("gradients")
    reach = read_csv(folder / "reach.csv")
    spectrum, radius = read_csv(folder / "spectrum.csv"), read_csv(folder / "radius.csv")
    yield "gradients-reach", gradients.reach_figure(reach)
    yield "gradients-spectrum", gradients.spectrum_figure(spectrum, radius)
    yield "gradients-information", gradients.information_figure(read_csv(folder / "information.csv"), reach)
    yield "gradients-alignment", gradients.alignment_figure(read_csv(folder / "alignment.csv"))
    yield "gradients-unclipped", gradients.unclipped_figure(read_csv(folder / "unclipped.csv"))


def _of_truncation(layout: Layout) -> Drawn:
    folder = layout.reports("gradients")
    draws, convergence = read_csv(folder / "truncation.csv"), read_csv(folder / "convergence.csv")
    yield "gradients-truncation", gradients.truncation_figure(draws, convergence)
    yield "gradients-trained", gradients.trained_figure(read_csv(folder / "trained.csv"))
    yield "gradients-cost", gradients.cost_figure(read_csv(folder / "cost.csv"))


def _of_curves(layout: Layout) -> Drawn:
    yield "curves-data", curves.data_figure(read_csv(layout.benchmark("curves_data.csv")))
    yield "curves-time", curves.time_figure(read_csv(layout.benchmark("curves_time.csv")))
