"""How minibatches are cut from a stream of tokens (section 8.3.4).

Both samplers skip a random number of tokens at the start, so that epochs cut the text at different positions. Targets
are the inputs shifted by one token.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Minibatch = tuple[NDArray[np.int64], NDArray[np.int64]]


def random_minibatches(
    tokens: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator, *, done: int = 0
) -> Iterator[Minibatch]:
    """Yield inputs and targets of shape ``(batch_size, num_steps)`` from random positions.

    Every subsequence of an epoch is used at most once; only those that do not fill the last minibatch are left out.
    The first ``done`` minibatches are skipped, to resume an epoch. Raises ValueError if the text is too short.
    """
    offset = _random_offset(tokens, batch_size, num_steps, rng)
    starts = rng.permutation((len(tokens) - offset - 1) // num_steps) * num_steps + offset
    for first in range(done * batch_size, len(starts) - batch_size + 1, batch_size):
        positions = starts[first : first + batch_size, None] + np.arange(num_steps)  # (B, T)
        yield tokens[positions].astype(np.int64), tokens[positions + 1].astype(np.int64)


def sequential_minibatches(
    tokens: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator, *, done: int = 0
) -> Iterator[Minibatch]:
    """Yield inputs and targets of shape ``(batch_size, num_steps)`` in the order of the text.

    The text is cut into ``batch_size`` rows; row i of a minibatch starts where row i of the previous one ended. The
    first ``done`` minibatches are skipped, to resume an epoch. Raises ValueError if the text is too short.
    """
    offset = _random_offset(tokens, batch_size, num_steps, rng)
    row_length = (len(tokens) - offset - 1) // batch_size
    end = offset + row_length * batch_size
    inputs = tokens[offset:end].reshape(batch_size, row_length)
    targets = tokens[offset + 1 : end + 1].reshape(batch_size, row_length)
    for first in range(done * num_steps, row_length - num_steps + 1, num_steps):
        window = slice(first, first + num_steps)
        yield inputs[:, window].astype(np.int64), targets[:, window].astype(np.int64)


def fits(num_tokens: int, batch_size: int, num_steps: int) -> bool:
    """Return whether a text has enough tokens for one minibatch, whatever the offset.

    The largest offset is ``num_steps - 1`` and the last target is one token further, so both samplers need
    ``num_steps * (batch_size + 1)`` tokens.
    """
    return num_tokens >= num_steps * (batch_size + 1)


def _random_offset(tokens: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator) -> int:
    if not fits(len(tokens), batch_size, num_steps):
        raise ValueError(f"{len(tokens)} tokens are too few for batch_size {batch_size} and num_steps {num_steps}")
    return int(rng.integers(num_steps))
