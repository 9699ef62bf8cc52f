"""What a training leaves behind beside its weights: its history, and the figures that sum it up."""

import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from seqlm.train.trainer import Trainer


def history_table(trainer: Trainer) -> pd.DataFrame:
    """Return one row an epoch: run and the fields of :class:`~seqlm.train.trainer.Epoch`.

    A perplexity on val that is not finite has an empty cell, as an epoch without a look at val has.
    """
    rows = [asdict(row) | {"val_perplexity": _finite(row.val_perplexity)} for row in trainer.progress.history]
    return pd.DataFrame([{"run": trainer.config.run} | row for row in rows])


def summarise(trainer: Trainer, kept_epoch: int) -> dict[str, Any]:
    """Return how a training went; values that are not finite are None, with the reason."""
    history, progress = trainer.progress.history, trainer.progress
    looks = [row.val_perplexity for row in history if row.val_perplexity is not None]
    found: dict[str, Any] = {
        "epochs": len(history),
        "kept_epoch": kept_epoch,
        "last_epoch_train_perplexity": history[-1].train_perplexity,
        "last_val_perplexity": _finite(looks[-1]) if looks else None,
        "best_val_perplexity": _finite(progress.best_val_perplexity),
        "best_epoch": progress.best_epoch,
        "parameters": trainer.num_parameters,
    }
    if infinite := sum(not math.isfinite(look) for look in looks):
        found["reason"] = f"perplexity on val is beyond the largest number in {infinite} of {len(looks)} looks at it"
    return found


def headline(trainer: Trainer) -> dict[str, Any]:
    """Return the figures that a terminal shows of a training: epochs done and the last perplexity on train."""
    history = trainer.progress.history
    return {"epoch": len(history), "train_perplexity": history[-1].train_perplexity}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
