"""The table that sets every model against every other."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from seqlm.evaluate.uncertainty import Draws, draw_bits
from seqlm.score.heldout.splits import Streams
from seqlm.score.store import Score
from seqlm.vocab.kinds.registry import Kind

COLUMNS = [
    "model", "kind", "adapts", "fitted_bits", "train_bits", "val_bits", "test_bits", "low", "high", "against_next",
    "test_perplexity", "unknown_share",
]  # fmt: skip


def collect_measures(scored: list[Score], streams: Mapping[Kind, Streams]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return model -> split -> measures."""
    return {model.name: model.measures(streams[model.kind]) for model in scored}


def draw_models(
    scored: list[Score],
    streams: Mapping[Kind, Streams],
    measures: Mapping[str, Mapping[str, Mapping[str, Any]]],
    seed: int,
) -> dict[str, Draws]:
    """Return each model on the same draws of test text, but for those that give a token of it no chance."""
    return {
        model.name: draw_bits(model.nats["test"], streams[model.kind]["test"], seed)
        for model in scored
        if measures[model.name]["test"]["bits_per_character"] is not None
    }


def rank_models(
    scored: list[Score], measures: Mapping[str, Mapping[str, Mapping[str, Any]]], draws: Mapping[str, Draws]
) -> pd.DataFrame:
    """Return one row a model, the best on test first, infinite ones last.

    ``adapts`` says of a model that it learns on from test; ``low`` and ``high`` bound the
    test figure at 95 %; ``against_next`` compares the model with the next one in the table
    on the same draws of test text.
    """
    rows = []
    for model in scored:
        measured = measures[model.name]
        test, train = measured["test"], measured.get("train", {})
        row = {
            "model": model.name,
            "kind": model.kind,
            "adapts": model.adapts,
            "fitted_bits": measured.get("fitted", train).get("bits_per_character"),
            "train_bits": train.get("bits_per_character"),
            "val_bits": measured["val"]["bits_per_character"],
            "test_bits": test["bits_per_character"],
            "test_perplexity": test["perplexity"],
            "unknown_share": test["unknown_share"],
        }
        if model.name in draws:
            row["low"], row["high"] = draws[model.name].interval
        rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    numbers = [column for column in COLUMNS if column not in ("model", "kind", "adapts", "against_next")]
    table[numbers] = table[numbers].astype(np.float64)
    table = table.sort_values(["test_bits", "model"], na_position="last", ignore_index=True)
    table["against_next"] = _compare_neighbours(list(table["model"]), draws)
    return table


def leaders(table: pd.DataFrame, draws: Mapping[str, Draws]) -> dict[str, dict[str, Any] | None]:
    """Return the best model on test of each of three sorts; None where there is none of a sort.

    ``trained``: those that stay as they were trained, against the next of them; ``adapting``:
    those that learn on from test, against the best that stays; ``counting``: n-gram models.
    """

    def lead(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, Any] | None:
        if not rows:
            return None
        name, other = rows[0]["model"], others[0]["model"] if others else None
        verdict = None if other is None else draws[name].compare(draws[other])
        perplexity = None if math.isnan(rows[0]["test_perplexity"]) else rows[0]["test_perplexity"]
        found = {"model": name, "bits": rows[0]["test_bits"], "perplexity": perplexity}
        return found | {"against": other, "verdict": verdict}

    rows = table.dropna(subset=["test_bits"]).to_dict("records")
    trained = [row for row in rows if not row["adapts"]]
    adapting = [row for row in rows if row["adapts"]]
    counting = [row for row in trained if row["model"].startswith(f"{row['kind']}-")]
    return {
        "trained": lead(trained, trained[1:]),
        "adapting": lead(adapting, trained),
        "counting": lead(counting, []),
    }


def _compare_neighbours(models: list[str], draws: Mapping[str, Draws]) -> list[str | None]:
    verdicts: list[str | None] = []
    for model, following in zip(models, [*models[1:], None], strict=True):
        both = model in draws and following in draws
        verdicts.append(draws[model].compare(draws[following]) if both and following is not None else None)
    return verdicts
