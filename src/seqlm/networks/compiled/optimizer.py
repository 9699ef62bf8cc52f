"""Gradient clipping, and the steps of SGD and AdamW, on the flat arrays of a compiled network."""

import math

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from seqlm.core.compiling import jit_entry
from seqlm.networks.compiled.weights import Flat
from seqlm.networks.network import OptimizerName

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""The decay rates of AdamW's two means, and what keeps it from dividing by 0: PyTorch's values."""
_NUM_SUMS = 32


class FlatOptimizer:
    """SGD or AdamW (Loshchilov and Hutter 2019) that changes weights by gradients, in place."""

    def __init__(
        self, name: OptimizerName, weights: Flat, gradients: Flat, weight_decay: float = 0.0
    ) -> None:
        """``weights`` and ``gradients`` are flat arrays; only AdamW uses the weight decay."""
        self._weights, self._gradients, self._weight_decay = weights, gradients, weight_decay
        self._state: dict[str, NDArray[np.floating]] = {}
        if name == "adamw":
            self._state = {
                "mean": np.zeros_like(weights),
                "square": np.zeros_like(weights),
                "powers": np.ones(2),
            }

    def state(self) -> dict[str, NDArray[np.floating]]:
        """AdamW's means of gradients and of their squares, and its decay rates to the power t."""
        return self._state

    def step(self, lr: float) -> None:
        """Change the weights by their gradients."""
        if not self._state:
            _sgd_step(self._weights, self._gradients, np.float32(lr))
            return
        # Multiplied step by step: the powers of a mathematical library depend on the machine.
        powers = self._state["powers"]
        powers *= (BETA1, BETA2)
        first, second = (1 - powers).tolist()
        _adamw_step(
            self._weights,
            self._gradients,
            self._state["mean"],
            self._state["square"],
            np.float32(1 - lr * self._weight_decay),
            np.float32(lr / first),
            np.float32(math.sqrt(second)),
        )


def clip(gradients: Flat, max_norm: float) -> float:
    """Scale gradients whose norm exceeds ``max_norm`` to this norm (8.5.3).

    Returns the norm before. It is added up in double precision and in one order.
    """
    norm = math.sqrt(_sum_of_squares(gradients, np.zeros(_NUM_SUMS)))
    if norm > max_norm:
        gradients *= np.float32(max_norm / norm)
    return norm


@jit_entry
def _sum_of_squares(values: Flat, sums: NDArray[np.float64]) -> float:
    """Numbers that are 32 apart share a sum, so that the loop becomes vector instructions."""
    whole = len(values) // _NUM_SUMS * _NUM_SUMS
    for start in range(0, whole, _NUM_SUMS):
        for k in range(_NUM_SUMS):
            value = float64(values[start + k])
            sums[k] += value * value
    total = 0.0
    for index in range(whole, len(values)):
        total += float64(values[index]) * float64(values[index])
    for k in range(_NUM_SUMS):
        total += sums[k]
    return total


@jit_entry
def _sgd_step(weights: Flat, gradients: Flat, lr: np.float32) -> None:
    for index in range(len(weights)):
        weights[index] -= lr * gradients[index]


_RATE1, _RATE2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
_EPSILON = np.float32(EPSILON)


@jit_entry
def _adamw_step(
    weights: Flat,
    gradients: Flat,
    means: Flat,
    squares: Flat,
    decay: np.float32,
    step_size: np.float32,
    root_correction: np.float32,
) -> None:
    """One step of AdamW.

    ``step_size`` is lr / (1 - beta1^t), ``root_correction`` the square root of 1 - beta2^t.
    """
    for index in range(len(weights)):
        gradient = gradients[index]
        mean = means[index] + _RATE1 * (gradient - means[index])
        square = squares[index] + _RATE2 * (gradient * gradient - squares[index])
        means[index], squares[index] = mean, square
        root = np.sqrt(square) / root_correction + _EPSILON
        weights[index] = decay * weights[index] - step_size * mean / root
