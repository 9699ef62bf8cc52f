"""How minibatches are cut from a stream of tokens (section 8.3.4).

Both samplers drop a random number of tokens at the start, so that epochs see the text
cut at different places, and give targets that are the inputs shifted by one.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError

Minibatch = tuple[NDArray[np.int64], NDArray[np.int64]]


def random_minibatches(
    tokens: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator, *, done: int = 0
) -> Iterator[Minibatch]:
    """Yield inputs and targets of shape ``(batch_size, num_steps)`` from random places.

    Every subsequence of an epoch comes once at most; only those that do not fill a last
    minibatch are left out. The first ``done`` minibatches are passed over: an epoch that was
    interrupted goes on. Raises DataError where the text is too short.
    """
    require_length(len(tokens), batch_size, num_steps)
    offset = int(rng.integers(num_steps))
    starts = rng.permutation((len(tokens) - offset - 1) // num_steps) * num_steps + offset
    steps = np.arange(num_steps)
    for first in range(done * batch_size, len(starts) - batch_size + 1, batch_size):
        places = starts[first : first + batch_size, None] + steps  # (B, T)
        yield tokens[places].astype(np.int64), tokens[places + 1].astype(np.int64)


def sequential_minibatches(
    tokens: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator, *, done: int = 0
) -> Iterator[Minibatch]:
    """Yield inputs and targets of shape ``(batch_size, num_steps)`` in the order of the text.

    The text is laid out in ``batch_size`` lanes; row i of a minibatch goes on where row i
    of the one before ended. The first ``done`` minibatches are passed over: an epoch that was
    interrupted goes on. Raises DataError where the text is too short.
    """
    require_length(len(tokens), batch_size, num_steps)
    offset = int(rng.integers(num_steps))
    lane_length = (len(tokens) - offset - 1) // batch_size
    end = offset + lane_length * batch_size
    inputs = tokens[offset:end].reshape(batch_size, lane_length)
    targets = tokens[offset + 1 : end + 1].reshape(batch_size, lane_length)
    for first in range(done * num_steps, lane_length - num_steps + 1, num_steps):
        window = slice(first, first + num_steps)
        yield inputs[:, window].astype(np.int64), targets[:, window].astype(np.int64)


def require_length(num_tokens: int, batch_size: int, num_steps: int) -> None:
    """Raise DataError unless a text of ``num_tokens`` gives a minibatch whatever the offset.

    The largest offset is ``num_steps - 1`` and the last target stands one token further,
    so both samplers need ``num_steps * (batch_size + 1)`` tokens.
    """
    if num_tokens >= num_steps * (batch_size + 1):
        return
    if num_tokens < 2:
        raise DataError(f"{num_tokens} tokens to train on: bring a longer text")
    largest_batch = max(num_tokens // num_steps - 1, 0)
    largest_steps = num_tokens // (batch_size + 1)
    choices = [
        f"batch_size {largest_batch} at num_steps {num_steps}" if largest_batch else "",
        f"num_steps {largest_steps} at batch_size {batch_size}" if largest_steps else "",
    ]
    possible = " or ".join(choice for choice in choices if choice) or f"batch_size 1 at num_steps {num_tokens // 2}"
    raise DataError(
        f"{num_tokens} tokens to train on are too few for batch_size {batch_size} and num_steps {num_steps}: "
        f"the largest possible are {possible}"
    )
