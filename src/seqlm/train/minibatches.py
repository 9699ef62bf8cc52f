"""How a text is cut into minibatches (section 8.3.4), how many a training run takes, and the
learning rate of each.

Both samplers skip a random number of tokens at the start, so that epochs cut the text at different
positions. Targets are the inputs shifted by one token.

A history has one row for each epoch. If ``token_budget`` ends the training before its last epoch,
the history has ``num_epochs`` rows for equal parts of what is trained, and the learning rate
schedule covers just that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.train.settings import RunConfig

Minibatch = tuple[NDArray[np.int64], NDArray[np.int64]]


def minibatches(
    sampling: Literal["random", "sequential"],
    tokens: NDArray[np.integer],
    batch_size: int,
    num_steps: int,
    rng: np.random.Generator,
    *,
    done: int = 0,
) -> Iterator[Minibatch]:
    """Yield inputs and targets of shape ``(batch_size, num_steps)``.

    Random ones are subsequences in any order; those of an epoch that do not fill the last minibatch
    are left out. Sequential ones are in the order of the text, which is cut into ``batch_size``
    rows: row i of a minibatch starts where row i of the previous one ended. No token is an input
    twice. The first ``done`` minibatches are skipped, to resume an epoch. Raises ValueError if the
    text is too short.
    """
    if not fits(len(tokens), batch_size, num_steps):
        raise ValueError(
            f"{len(tokens)} tokens are too few for batch_size {batch_size} and num_steps "
            f"{num_steps}"
        )
    offset = int(rng.integers(num_steps))
    num_targets = len(tokens) - offset - 1
    if sampling == "random":
        order = rng.permutation(num_targets // num_steps)
        starts = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size) * num_steps
    else:
        row_length = num_targets // batch_size
        first = np.arange(row_length // num_steps) * num_steps
        starts = first[:, None] + np.arange(batch_size) * row_length
    for row_starts in starts[done:] + offset:
        positions = row_starts[:, None] + np.arange(num_steps)  # (B, T)
        yield tokens[positions].astype(np.int64), tokens[positions + 1].astype(np.int64)


def fits(num_tokens: int, batch_size: int, num_steps: int) -> bool:
    """Return whether a text has enough tokens for one minibatch, whatever the offset.

    The largest offset is ``num_steps - 1`` and the last target is one token further, so both
    samplers need ``num_steps * (batch_size + 1)`` tokens.
    """
    return num_tokens >= num_steps * (batch_size + 1)


_MIN_VAL_TOKENS = 10_000


@dataclass(frozen=True)
class Plan:
    """The minibatches of a training run."""

    num_tokens: int
    """Tokens of the training text."""
    batch_size: int
    num_steps: int
    num_rows: int
    """Rows of the complete history."""
    num_minibatches: int | None = None
    """Minibatches of a training run that ``token_budget`` ends; None: all epochs are trained.

    Epochs that drop tokens at the start have fewer, so a budget just below the whole may reach into
    one epoch more."""

    @classmethod
    def of(cls, config: RunConfig, num_tokens: int) -> "Plan":
        """Return the plan of a run on a text of ``num_tokens``.

        Raises DataError if the text is too short for one minibatch.
        """
        num_steps = config.num_steps
        # One window spans each batch row, except what a random offset may drop.
        if config.truncation == "full":
            num_steps = max(num_tokens // (config.batch_size + 1), 1)
        if not fits(num_tokens, config.batch_size, num_steps):
            raise DataError(
                f"run {config.run}: {num_tokens} tokens are too few for minibatches of "
                f"{config.batch_size} x "
                f"{num_steps}: use a longer text, or lower this run's batch_size and num_steps"
            )
        whole = cls(num_tokens, config.batch_size, num_steps, config.num_epochs)
        if config.token_budget is None or config.token_budget >= whole.tokens_to_train:
            return whole
        num_minibatches = max(config.token_budget // whole.tokens_per_batch, 1)
        return replace(
            whole, num_rows=min(config.num_epochs, num_minibatches), num_minibatches=num_minibatches
        )

    @property
    def tokens_per_batch(self) -> int:
        """Tokens of a minibatch."""
        return self.batch_size * self.num_steps

    @property
    def batches_per_epoch(self) -> int:
        """Minibatches of an epoch that drops no tokens at the start of the text."""
        return (self.num_tokens - 1) // self.tokens_per_batch

    @property
    def tokens_to_train(self) -> int:
        """Tokens of the whole training, including those that epochs drop at the start of the
        text."""
        return (
            self.num_minibatches or self.num_rows * self.batches_per_epoch
        ) * self.tokens_per_batch

    @property
    def epochs_to_train(self) -> float:
        """Epochs of the whole training; if it ends early, not always a whole number."""
        return (
            self.num_rows
            if self.num_minibatches is None
            else self.num_minibatches / self.batches_per_epoch
        )

    def val_token_budget(self, config: RunConfig) -> int:
        """Return how many tokens of val an evaluation may read.

        A quarter of the tokens trained since the previous evaluation, so that evaluating never
        takes longer than training, but at least 10,000: fewer would say too little. ``eval_tokens``
        is a limit too.
        """
        trained = self.tokens_to_train * min(config.eval_every, self.num_rows) // self.num_rows
        budget = max(trained // 4, _MIN_VAL_TOKENS)
        return budget if config.eval_tokens is None else min(config.eval_tokens, budget)
