"""What a training leaves behind beside its weights: its history, and the figures that sum it up."""

import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from seqlm.train.legs import HistoryRow
from seqlm.train.trainer import Trainer


def history_table(trainer: Trainer, *, with_leg_so_far: bool = False) -> pd.DataFrame:
    """Return one row a leg: run and the fields of :class:`~seqlm.train.legs.HistoryRow`.

    ``with_leg_so_far``: a last row says what the leg that is going on has come to. A perplexity
    on val that is not finite has an empty cell, as a leg without a look at val has.
    """
    legs = _legs_so_far(trainer) if with_leg_so_far else trainer.progress.history
    rows = [asdict(leg) | {"val_perplexity": _finite(leg.val_perplexity)} for leg in legs]
    return pd.DataFrame([{"run": trainer.config.run} | row for row in rows])


def summarise(trainer: Trainer, kept_epoch: float) -> dict[str, Any]:
    """Return how a training went, and the minibatches it had; values that are not finite are None, with the reason."""
    history, progress, plan = trainer.progress.history, trainer.progress, trainer.plan
    looks = [row.val_perplexity for row in history if row.val_perplexity is not None]
    found: dict[str, Any] = {
        "epochs": trainer.epochs_trained,
        "kept_epoch": kept_epoch,
        "last_epoch_train_perplexity": history[-1].train_perplexity,
        "last_val_perplexity": _finite(looks[-1]) if looks else None,
        "best_val_perplexity": _finite(progress.best_val_perplexity),
        "best_epoch": progress.best_epoch,
        "parameters": trainer.num_parameters,
        "tokens": trainer.tokens_trained,
        "bounded": plan.is_bounded,
        "batch_size": plan.batch_size,
        "num_steps": plan.num_steps,
        "shrunk": plan.batch_reduced,
    }
    if infinite := sum(not math.isfinite(look) for look in looks):
        found["reason"] = f"perplexity on val is beyond the largest number in {infinite} of {len(looks)} looks at it"
    return found


def headline(trainer: Trainer, *, with_leg_so_far: bool = False) -> dict[str, Any]:
    """Return the figures that a terminal shows of a training: epochs done and the last perplexity on train."""
    last = (_legs_so_far(trainer) if with_leg_so_far else trainer.progress.history)[-1]
    return {"epoch": last.epoch, "train_perplexity": _finite(last.train_perplexity)}


def _legs_so_far(trainer: Trainer) -> list[HistoryRow]:
    so_far = trainer.leg_so_far()
    return [*trainer.progress.history, *([] if so_far is None else [so_far])]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
