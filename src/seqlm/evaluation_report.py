"""What the evaluation leaves behind: tables, figures, and passages for the page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from seqlm.diagnostics import Predictor, calibration_error, calibration_table, class_table, position_table
from seqlm.evaluation import Scored
from seqlm.figures.evaluation import (
    calibration_figure,
    class_figure,
    comparison_figure,
    learning_figure,
    position_figure,
)
from seqlm.figures.ngrams import order_figure
from seqlm.figures.style import PALETTE, colour_of, save_svg
from seqlm.files import read_csv, write_csv, write_json
from seqlm.surprisal import passage
from seqlm.vocab import Vocab, load_split, token_blocks

_MAX_PASSAGES = 8


def write_history(histories: Path, runs: list[str], reports: Path) -> None:
    """Join the runs' histories into one table and draw their learning curves."""
    history = pd.concat([read_csv(histories / run / "history.csv") for run in runs], ignore_index=True)
    write_csv(reports / "history.csv", history)
    save_svg(learning_figure(history), reports / "learning.svg")


def write_scores(
    table: pd.DataFrame,
    measures: Mapping[str, Mapping[str, Mapping[str, Any]]],
    choices: Mapping[str, float],
    reports: Path,
) -> None:
    """Write the metrics that experiments are compared by, the table, and the figures drawn from it."""
    write_json(reports / "metrics.json", measures)
    write_json(reports / "choices.json", choices)
    write_csv(reports / "table.csv", table)
    save_svg(comparison_figure(table), reports / "comparison.svg")
    orders = order_table(table)
    write_csv(reports / "orders.csv", orders)
    networks = table[(table["kind"] == "char") & ~table["model"].str.contains(r"^char-|\+")]
    colours = {name: colour_of(name) for name in [*orders["smoothing"], *networks["model"]]}
    colours |= {"word-laplace": PALETTE[4], "word-kneser-ney": PALETTE[2]}
    # Networks that are far worse than counting would squeeze the curves together.
    shown = networks[networks["test_bits"] <= orders["bits_per_character"].max()]
    best = dict(zip(shown["model"], shown["test_bits"], strict=True))
    save_svg(order_figure(orders, best, colours), reports / "orders.svg")


def write_diagnostics(
    scored: list[Scored],
    predictors: Mapping[str, Predictor],
    corpus: Path,
    text: Path,
    reports: Path,
) -> None:
    """Write how surprisal depends on context, on the class of character and on confidence, for models of characters.

    ``predictors`` are the models that are shown, by name, those of characters.
    """
    vocab = Vocab.load(corpus / "char" / "vocab.json")
    ids = load_split(corpus / "char", "test")
    positions = position_table(predictors, ids)
    characters = "".join("".join(block) for block in token_blocks(text / "test.txt", "char", vocab.line_separator))
    nats = {model.name: model.nats["test"] for model in scored}
    classes = class_table({name: nats[name] for name in predictors}, characters)
    calibration = calibration_table(predictors, ids)
    for name, frame in (("positions", positions), ("classes", classes), ("calibration", calibration)):
        write_csv(reports / f"{name}.csv", frame)
    write_json(reports / "calibration.json", calibration_error(calibration))
    save_svg(position_figure(positions), reports / "positions.svg")
    save_svg(class_figure(classes), reports / "classes.svg")
    save_svg(calibration_figure(calibration), reports / "calibration.svg")


def order_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return held-out bits per character of the n-gram models: smoothing, order, bits_per_character."""
    found = table["model"].str.extract(r"^((?:char|word)-(?:laplace|kneser-ney))-(\d+)$")
    rows = pd.DataFrame(
        {"smoothing": found[0], "order": pd.to_numeric(found[1]), "bits_per_character": table["test_bits"]}
    ).dropna(subset=["smoothing"])
    return rows.astype({"order": int}).sort_values(["smoothing", "order"], ignore_index=True)


def write_passages(
    scored: list[Scored], table: pd.DataFrame, corpus: Path, text: Path, num_chars: int, details: Path
) -> None:
    """Write the beginning of test with each token's surprisal, under the best models and all runs."""
    by_name = {model.name: model for model in scored}
    names = [name for name in table["model"] if not name.startswith(("char-", "word-"))]
    for kind in ("char", "word"):
        of_kind = [name for name in table["model"] if name.startswith(f"{kind}-kneser-ney")]
        names += of_kind[:1]
    found = {}
    for name in names[:_MAX_PASSAGES]:
        model = by_name[name]
        vocab = Vocab.load(corpus / model.kind / "vocab.json")
        blocks = token_blocks(text / "test.txt", model.kind, vocab.line_separator)
        tokens = [token for block in blocks for token in block]
        found[name] = passage(tokens, " " if model.kind == "word" else "", model.nats["test"], num_chars)
    write_json(details / "passages.json", found)
