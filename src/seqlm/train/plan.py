"""How long a training is, how its minibatches are cut, and where the rows of its history end.

A training has legs: each gives one row of the history, and looks at val, printed samples and
patience count them. Where the settings allow all epochs, a leg is an epoch. Where
``max_trained_tokens`` or ``max_flops`` ends the training earlier, it has as many legs as it would have had
epochs, all of one length, and the learning rate's schedule spans what is trained.
"""

from dataclasses import dataclass

from seqlm.core.errors import DataError
from seqlm.train.settings import RunConfig

_LEAST_OF_LOOK = 10_000
_FLOPS_OF_PARAMETER = 6
"""A multiplication and an addition forward, two of each back."""


@dataclass(frozen=True)
class Plan:
    """The minibatches of a training."""

    num_tokens: int
    """Tokens of the text that is trained on."""
    batch_size: int
    num_steps: int
    batch_reduced: bool
    """Whether the text has fewer tokens than a minibatch of the settings' size needs."""
    num_legs: int
    num_minibatches: int | None
    """Minibatches of a training that ends before its last epoch; None: all epochs are trained."""
    bound: str | None
    """The setting that ends it then."""

    @classmethod
    def of(cls, config: RunConfig, num_tokens: int, num_parameters: int, num_processes: int = 1) -> "Plan":
        """Return the plan of a run on a text of ``num_tokens``.

        Raises DataError where the text is too short for any minibatch.
        """
        batch_size, num_steps = config.batch_size, config.num_steps
        if config.truncation == "full":
            # Without truncation, one window spans each lane, less what the random offset may drop.
            num_steps = max(num_tokens // (batch_size + 1), 1)
        fitting = largest_that_fit(num_tokens, batch_size, num_steps, num_processes)
        batch_reduced, (batch_size, num_steps) = fitting != (batch_size, num_steps), fitting
        bare = cls(num_tokens, batch_size, num_steps, batch_reduced, config.num_epochs, None, None)
        bounds: dict[str, float] = {}
        if config.max_trained_tokens is not None:
            bounds["max_trained_tokens"] = config.max_trained_tokens
        if config.max_flops is not None:
            bounds["max_flops"] = config.max_flops / (_FLOPS_OF_PARAMETER * num_parameters)
        bound = min(bounds, key=lambda name: bounds[name], default="")
        if not bound or bounds[bound] >= bare.tokens_to_train:
            return bare
        num_minibatches = max(int(bounds[bound]) // bare.tokens_per_batch, 1)
        num_legs = min(config.num_epochs, num_minibatches)
        return cls(num_tokens, batch_size, num_steps, batch_reduced, num_legs, num_minibatches, bound)

    @property
    def is_bounded(self) -> bool:
        """Whether a bound ends the training before its last epoch."""
        return self.num_minibatches is not None

    @property
    def tokens_per_batch(self) -> int:
        """Tokens of a minibatch."""
        return self.batch_size * self.num_steps

    @property
    def batches_per_epoch(self) -> int:
        """Minibatches of an epoch that drops no tokens at the start of the text."""
        return max((self.num_tokens - 1) // self.tokens_per_batch, 1)

    @property
    def tokens_to_train(self) -> int:
        """Tokens that the whole training sees, but for what an epoch drops at its start."""
        return (self.num_minibatches or self.num_legs * self.batches_per_epoch) * self.tokens_per_batch

    @property
    def epochs_to_train(self) -> float:
        """Epochs of the whole training; of one that ends early, not always a whole number."""
        return self.num_legs if self.num_minibatches is None else self.num_minibatches / self.batches_per_epoch

    def val_token_budget(self, config: RunConfig) -> int:
        """Return how many tokens of val a look may read: a quarter of those trained since the look before, or more.

        Looks shall not take longer than training. Less than 10,000 would say too little.
        """
        between = self.tokens_to_train * min(config.eval_every, self.num_legs) // self.num_legs
        most = max(between // 4, _LEAST_OF_LOOK)
        return most if config.eval_tokens is None else min(config.eval_tokens, most)

    def share_done(self, epochs: int, index: int, minibatches: int) -> float:
        """Return which share of the training is done before a minibatch, at most 1.

        ``epochs`` are complete, ``index`` minibatches of the present one are done, and
        ``minibatches`` of all.
        """
        if self.num_minibatches is None:
            return min((epochs + index / self.batches_per_epoch) / self.num_legs, 1.0)
        return min(minibatches / self.num_minibatches, 1.0)

    def ends_leg(self, leg: int, minibatches: int) -> bool:
        """Whether leg number ``leg``, the first is 1, ends after so many minibatches; never before an epoch's end
        where a leg is an epoch."""
        if self.num_minibatches is None:
            return False
        return minibatches == self.num_minibatches * leg // self.num_legs


def largest_that_fit(num_tokens: int, batch_size: int, num_steps: int, num_processes: int = 1) -> tuple[int, int]:
    """Return the batch size and steps of the largest minibatches that a text gives, whatever the offset.

    The largest offset is ``num_steps - 1`` and the last target stands one token further, so
    both samplers need ``num_steps * (batch_size + 1)`` tokens. A shorter text gets fewer
    lanes, a multiple of ``num_processes``, and if one each is too much, fewer steps.
    Raises DataError where even lanes of one step are too long.
    """
    if num_tokens >= num_steps * (batch_size + 1):
        return batch_size, num_steps
    lanes = min(num_tokens // num_steps - 1, batch_size) // num_processes * num_processes
    if lanes > 0:
        return lanes, num_steps
    steps = min(num_tokens // (num_processes + 1), num_steps)
    if steps == 0:
        raise DataError(f"{num_tokens} tokens to train on: bring a longer text")
    return num_processes, steps
