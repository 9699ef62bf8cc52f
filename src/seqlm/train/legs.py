"""The rows of a training's history, and what is added up until one of them is whole."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from seqlm.core.metrics import perplexity


@dataclass(frozen=True)
class HistoryRow:
    """One row of the history: an epoch, or an equal part of a training that a bound ends."""

    epoch: float
    """Epochs trained when the leg ended; a whole number where legs are epochs."""
    train_perplexity: float
    val_perplexity: float | None
    """None in legs without a look at val."""
    grad_norm: float
    """Mean norm of the gradient before clipping."""
    grad_norm_max: float
    clipped_share: float
    lr: float
    """Of the leg's last minibatch."""
    tokens: int
    """Tokens trained when the leg ended, those of all lanes and epochs."""


@dataclass
class RunningTotals:
    """What a leg adds up over its minibatches, in one process."""

    nats: Tensor
    tokens: int = 0
    norms: list[Tensor] = field(default_factory=list)
    """Of the gradients before clipping, the same in every process."""
    lr: float = 0.0

    def as_leg(
        self, nats: float, num_tokens: int, *, epoch: float, tokens_trained: int, clip: float, val: float | None
    ) -> HistoryRow:
        """Return the row of what was added up; ``nats`` and ``num_tokens`` may be those of all processes."""
        norms = torch.stack(self.norms)
        return HistoryRow(
            epoch=epoch,
            train_perplexity=perplexity(nats, num_tokens),
            val_perplexity=val,
            grad_norm=float(norms.mean()),
            grad_norm_max=float(norms.max()),
            clipped_share=float((norms > clip).float().mean()),
            lr=self.lr,
            tokens=tokens_trained,
        )
