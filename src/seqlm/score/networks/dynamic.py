"""Dynamic evaluation: a network that keeps learning from the text that it has predicted (Krause et al. 2018).

After each segment of text, every parameter takes a step along its gradient divided by the root mean square of its
gradients on the training text, and is pulled back towards its trained value; parameters with large gradients are pulled
more strongly. So the influence of earlier text fades. The divisor is damped by a share of the average root mean square:
a parameter that train hardly uses, such as a row for a rare token, would otherwise take huge steps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats
from seqlm.core.threads import raise_if_cancelled
from seqlm.rnn.array_network import ArrayNetwork, HasArrays, Ids, Weights

DAMPING = 0.3
"""This share of the average root mean square is added to each one before dividing by it."""
_WARMUP = 64
"""Tokens that the network reads before a segment of train."""
_PARTS = 8
"""The segments of train are summed in this many parts, whatever the number of threads, so that sums have one order."""


@dataclass(frozen=True)
class DynamicRule:
    """An update scaled by the gradients' root mean squares, and a pull back to the trained weights."""

    lr: float
    decay: float
    """Share of the way back that a parameter of average root mean square takes at each update."""
    roots: Weights
    """Root mean squares (:func:`gradient_roots`)."""
    trained: Weights

    @property
    def settings(self) -> dict[str, float]:
        """The settings to choose from."""
        return {"lr": self.lr, "decay": self.decay}

    def apply(self, network: ArrayNetwork) -> None:
        """Change the weights by their gradients."""
        network.adapt(self.lr, self._scales, self.trained, self._pulls)

    @cached_property
    def _average_root(self) -> float:
        num_weights = sum(math.prod(root.shape) for root in self.roots)
        average = sum(float(root.sum()) for root in self.roots) / num_weights
        return average or 1.0  # without any gradient on train, all weights are equally important

    @cached_property
    def _scales(self) -> Weights:
        return [root + DAMPING * self._average_root for root in self.roots]

    @cached_property
    def _pulls(self) -> Weights:
        """The share of the way back for each parameter, at most 1."""
        return [(root * (self.decay / self._average_root)).clip(max=1) for root in self.roots]


def gradient_roots(network: HasArrays, ids: NDArray[np.integer], *, segment_length: int, num_segments: int) -> Weights:
    """Return the root mean square of each parameter's gradient over evenly spaced segments of a stream."""
    arrays, stream = network.arrays, np.asarray(ids, np.int64)
    starts = range(0, len(stream) - 1, segment_length)
    chosen = sorted({int(index) for index in np.linspace(0, len(starts) - 1, min(num_segments, len(starts)))})
    parts = np.array_split(np.array([starts[index] for index in chosen], np.int64), _PARTS)
    totals = [0 * weight for weight in arrays.weights]
    for part in arrays.imap(partial(_sums_of_squares, arrays, stream, segment_length), parts):
        for total, squares in zip(totals, part, strict=True):
            total += squares
    return [(total / max(len(chosen), 1)) ** 0.5 for total in totals]


def _sums_of_squares(network: ArrayNetwork, stream: Ids, length: int, starts: NDArray[np.int64]) -> Weights:
    """Return the sums of each parameter's squared gradients over the segments that begin at ``starts``."""
    observed = network.copy()
    squares = [0 * weight for weight in observed.weights]
    with observed.without_subnormals():
        for start in starts.tolist():
            raise_if_cancelled()
            state = observed.initial_state(1)
            if start > 0:
                state = observed.advance_state(stream[None, max(start - _WARMUP, 0) : start], state)
            observed.compute_gradients(*_segment(stream, start, length), state)
            for square, gradient in zip(squares, observed.gradients, strict=True):
                square += gradient * gradient
    return squares


def trained_weights(network: HasArrays) -> Weights:
    """Return copies of the parameters, in their order."""
    return network.arrays.copy().weights


def dynamic_nll(
    network: HasArrays, ids: NDArray[np.integer], *, update_every: int, update: Callable[[ArrayNetwork], None]
) -> Nats:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, with an update after every ``update_every``.

    Each segment is scored before the network learns from it; ``update`` gets the network with its gradients.
    ``network`` itself is not changed.
    """
    adapted, stream, segments = network.arrays.copy(), np.asarray(ids, np.int64), []
    state = adapted.initial_state(1)
    with adapted.without_subnormals():
        for start in range(0, len(stream) - 1, update_every):
            raise_if_cancelled()
            inputs, targets = _segment(stream, start, update_every)
            nats, state = adapted.compute_gradients(inputs, targets, state)
            segments.append(nats[0])
            update(adapted)
    return np.concatenate(segments) if segments else np.empty(0)


def _segment(stream: Ids, start: int, length: int) -> tuple[Ids, Ids]:
    """Return inputs and targets of the segment that begins at ``start``, each ``(1, T)``."""
    end = min(start + length, len(stream) - 1)
    return stream[None, start:end], stream[None, start + 1 : end + 1]
