"""The progress of a training run, and its history: a row for each epoch."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from seqlm.train.minibatches import Plan

FIRST_ROWS, EVEN_ROWS = 10, 40
"""How many of the first rows of the history have a sample, and how many evenly spaced ones."""
SAMPLE_TOKENS = 100


@dataclass(frozen=True)
class HistoryRow:
    """One epoch, or an equal part of a training run that a budget ends."""

    epoch: float
    """Epochs trained so far."""
    train_perplexity: float
    """On the minibatches of this row, while the weights changed."""
    val_perplexity: float | None
    """None: not evaluated on val."""
    grad_norm: float
    """Mean norm of the gradient before clipping."""
    clipped_share: float
    """Share of its minibatches whose gradient was clipped."""
    tokens: int
    """Tokens trained so far, in all batch rows and epochs."""


@dataclass
class RunningTotals:
    """What one process adds up over the minibatches of a history row.

    Until they are read, sums may be tensors on a device, so that training need not wait for it.
    """

    nll: Any = 0.0
    tokens: int = 0
    minibatches: int = 0
    norm: Any = 0.0
    """Norms of the gradients before clipping, the same in every process."""
    clipped: Any = 0
    """Minibatches whose gradient was clipped."""

    def add(self, nll: Any, norm: Any, max_norm: float) -> None:
        """Add a minibatch: -log p of its targets (B, T), and the norm of its gradient."""
        is_array = isinstance(nll, np.ndarray)
        self.nll = self.nll + (nll.sum() if is_array else nll.double().sum())
        self.tokens += math.prod(nll.shape)
        self.minibatches += 1
        self.norm = self.norm + norm
        self.clipped = self.clipped + (norm > max_norm)

    def values(self) -> list[float | int]:
        """The numbers, in the order of the fields."""
        totals = (float(self.nll), self.tokens, self.minibatches, float(self.norm))
        return [*totals, int(self.clipped)]


@dataclass
class Progress:
    """How far a training run has come."""

    plan: Plan
    history: list[HistoryRow] = field(default_factory=list)
    samples: list[list[Any]] = field(default_factory=list)
    """The epoch of some rows, and the tokens that the network wrote then."""
    num_epochs: int = 0
    """Complete epochs."""
    epoch_minibatches: int = 0
    """Minibatches trained in the current epoch."""
    minibatches: int = 0
    """Minibatches trained in all epochs."""
    best_epoch: float | None = None
    best_val_perplexity: float = math.inf
    evaluations_since_best: int = 0

    @property
    def epoch(self) -> float:
        """Epochs trained so far, including the finished share of the current one; an int if that is
        a whole number."""
        epoch = self.num_epochs + self.epoch_minibatches / self.plan.batches_per_epoch
        return int(epoch) if epoch == int(epoch) else epoch

    @property
    def tokens(self) -> int:
        """Tokens trained so far."""
        return self.minibatches * self.plan.tokens_per_batch

    @property
    def share_after_next(self) -> float:
        """Share of the training that is done after the next minibatch, from 0 to 1."""
        if self.plan.num_minibatches is not None:
            return (self.minibatches + 1) / self.plan.num_minibatches
        in_epoch = (self.epoch_minibatches + 1) / self.plan.batches_per_epoch
        return min((self.num_epochs + in_epoch) / self.plan.num_rows, 1.0)

    @property
    def is_at_row_end(self) -> bool:
        """Whether the minibatch just trained ends a row. Only with ``token_budget``: otherwise rows
        end with epochs."""
        total = self.plan.num_minibatches
        return (
            total is not None
            and self.minibatches == total * (len(self.history) + 1) // self.plan.num_rows
        )


def history_table(run: str, rows: Sequence[HistoryRow]) -> pd.DataFrame:
    """Return one row for each of a run's history: ``run`` and the fields of :class:`HistoryRow`.

    A perplexity on val that is not finite is an empty cell, like that of a row without an
    evaluation.
    """
    table = [
        {"run": run} | asdict(row) | {"val_perplexity": finite_or_none(row.val_perplexity)}
        for row in rows
    ]
    # With types of its own, pandas would write whole epochs beside fractions as 1.0.
    return pd.DataFrame(table, dtype=object)


def finite_or_none(value: float | None) -> float | None:
    """Return a number, or None for one that is not finite."""
    return value if value is not None and math.isfinite(value) else None


def is_sampled(row: int, num_rows: int) -> bool:
    """Return whether a row of the history, counted from 1, has a sample. The last one does."""
    return row <= FIRST_ROWS or row * EVEN_ROWS // num_rows > (row - 1) * EVEN_ROWS // num_rows
