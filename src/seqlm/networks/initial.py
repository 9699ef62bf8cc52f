"""Random numbers of networks: initial weights, and the masks of dropout and of truncation.

They come from NumPy's generator, so a network begins with the same weights whatever computes it.
Uniform numbers are the same bits on every processor. Normal ones are made from them with our own
logarithm, because NumPy's own depend on the C library.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log
from seqlm.networks.settings import NetworkSettings

Arrays = dict[str, NDArray[np.float32]]
Shapes = Mapping[str, tuple[int, ...]]

SCRATCH_STD = 0.01
"""Section 8.5: all matrices are drawn from N(0, 0.01²), all biases are zero."""
TRANSFORMER_STD = 0.05
"""A small network learns faster with this standard deviation than with the usual 0.02."""
_WEIGHTS, _MASKS = 1, 2
"""Numbers of the streams of a seed; minibatches have a stream of their own."""


def weights_rng(seed: int) -> np.random.Generator:
    """The generator of the initial weights of a seed."""
    return np.random.default_rng([seed, _WEIGHTS])


def masks_rng(seed: int) -> np.random.Generator:
    """The generator of all masks of a training run."""
    return np.random.default_rng([seed, _MASKS])


def initial_weights(settings: NetworkSettings, shapes: Shapes, rng: np.random.Generator) -> Arrays:
    """The initial weights of a network by name, drawn in the order of ``shapes``.

    The distributions are those of the chapter for ``scratch``, and those of PyTorch's layers for
    rnn, gru and lstm: U(-b, b) with b = 1 / sqrt(h), and N(0, 1) for an embedding. A tied embedding
    is drawn from N(0, 1 / h), because as an output matrix it would start far too large.
    """
    return {
        name: _draw(settings, name, shape, rng).astype(np.float32) for name, shape in shapes.items()
    }


def _draw(
    settings: NetworkSettings, name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    if settings.model == "scratch":
        return normal(rng, SCRATCH_STD, shape) if name.startswith("W") else np.zeros(shape)
    if settings.model == "transformer":
        if "norm" in name:
            return np.full(shape, float(name.endswith("weight")))
        if name.endswith("bias"):
            return np.zeros(shape)
        # The sum of all parts of all layers starts equally large, whatever their number.
        depth = 2 * settings.num_layers if name.endswith("_output.weight") else 1
        return normal(rng, TRANSFORMER_STD / math.sqrt(depth), shape)
    bound = 1 / math.sqrt(settings.num_hiddens)
    if name.startswith("embedding"):
        return normal(rng, bound if settings.tie_weights else 1.0, shape)
    return bound * (2 * rng.random(shape) - 1)


def normal(rng: np.random.Generator, std: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Numbers drawn from N(0, ``std``²) by Marsaglia's polar method (1964)."""
    size = math.prod(shape)
    values = np.empty(0)
    while len(values) < size:
        points = 2 * rng.random((2, size)) - 1
        squares = points[0] * points[0] + points[1] * points[1]
        is_inside = (squares > 0) & (squares < 1)
        squares = squares[is_inside]
        factors = np.sqrt(-2 * log(squares) / squares)
        values = np.concatenate([values, *(points[:, is_inside] * factors)])
    return std * values[:size].reshape(shape)


def mask(rng: np.random.Generator, keep: float, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Random factors: 1 / ``keep`` with probability ``keep``, otherwise 0."""
    is_kept = rng.random(shape) < keep
    return np.where(is_kept, np.float32(1 / keep), np.float32(0))
