"""What a training leaves behind beside its weights: its history, and the figures that sum it up."""

import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from seqlm.train.trainer import Trainer


def history_table(trainer: Trainer) -> pd.DataFrame:
    """Return one row an epoch: run and the fields of :class:`~seqlm.train.trainer.Epoch`."""
    return pd.DataFrame([{"run": trainer.config.run} | asdict(row) for row in trainer.progress.history])


def summarise(trainer: Trainer, kept_epoch: int) -> dict[str, Any]:
    """Return how a training went; values that are not finite are None."""
    history, progress = trainer.progress.history, trainer.progress
    looks = [row for row in history if row.val_perplexity is not None]
    return {
        "epochs": len(history),
        "kept_epoch": kept_epoch,
        "last_epoch_train_perplexity": history[-1].train_perplexity,
        "last_val_perplexity": _finite(looks[-1].val_perplexity) if looks else None,
        "best_val_perplexity": _finite(progress.best_val_perplexity),
        "best_epoch": progress.best_epoch,
        "parameters": trainer.num_parameters,
    }


def headline(trainer: Trainer) -> dict[str, Any]:
    """Return the figures that a terminal shows of a training: epochs done and the last perplexity on train."""
    history = trainer.progress.history
    return {"epoch": len(history), "train_perplexity": history[-1].train_perplexity}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
