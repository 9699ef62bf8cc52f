"""Dynamic evaluation: a network that keeps learning from the text that it has predicted (Krause et al. 2018).

After each segment of text, every parameter takes a step along its gradient divided by the root mean square of its
gradients on the training text, and is pulled back towards its trained value; parameters with large gradients are pulled
more strongly. So the influence of earlier text fades. The divisor is damped by a share of the average root mean square:
a parameter that train hardly uses, such as a row for a rare token, would otherwise take huge steps.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

from seqlm.core.devices import in_double
from seqlm.core.metrics import Nats
from seqlm.core.threads import raise_if_cancelled
from seqlm.rnn.network import Network
from seqlm.rnn.threads import imap_one_thread_each

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
    roots: list[Tensor]
    """Root mean squares, one tensor for each parameter (:func:`gradient_roots`)."""
    trained: list[Tensor]

    @property
    def settings(self) -> dict[str, float]:
        """The settings to choose from."""
        return {"lr": self.lr, "decay": self.decay}

    def apply(self, parameters: list[Parameter]) -> None:
        """Change the parameters by their gradients."""
        for parameter, scale, trained, pull in zip(parameters, self._scales, self.trained, self._pulls, strict=True):
            if parameter.grad is not None:
                parameter.addcdiv_(parameter.grad, scale, value=-self.lr)
                parameter.lerp_(trained, pull)

    @cached_property
    def _average_root(self) -> float:
        average = sum(float(root.sum()) for root in self.roots) / sum(root.numel() for root in self.roots)
        return average or 1.0  # without any gradient on train, all weights are equally important

    @cached_property
    def _scales(self) -> list[Tensor]:
        return [root + DAMPING * self._average_root for root in self.roots]

    @cached_property
    def _pulls(self) -> list[Tensor]:
        """The share of the way back for each parameter, at most 1."""
        return [(root * (self.decay / self._average_root)).clamp_(max=1) for root in self.roots]


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Treat numbers below 1.2e-38 as zero in here, if the processor can.

    They change no weight, and a processor may take a hundred times as long for them. They arise from the tiny
    probabilities of most tokens of a large vocabulary, and from states of a network that keeps learning.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def gradient_roots(
    network: Network, ids: NDArray[np.integer], *, segment_length: int, num_segments: int
) -> list[Tensor]:
    """Return the root mean square of each parameter's gradient over evenly spaced segments of a stream."""
    stream = _as_stream(ids, list(network.parameters()))
    starts = range(0, len(stream) - 1, segment_length)
    chosen = sorted({int(index) for index in np.linspace(0, len(starts) - 1, min(num_segments, len(starts)))})
    parts = np.array_split(np.array([starts[index] for index in chosen], np.int64), _PARTS)
    sums = imap_one_thread_each(partial(_sums_of_squares, network, stream, segment_length), parts, network.device)
    totals = [torch.zeros_like(parameter) for parameter in network.parameters()]
    for part in sums:
        for total, squares in zip(totals, part, strict=True):
            total += squares
    return [total.div_(max(len(chosen), 1)).sqrt_() for total in totals]


@without_subnormals()
def _sums_of_squares(network: Network, stream: Tensor, length: int, starts: NDArray[np.int64]) -> list[Tensor]:
    """Return the sums of each parameter's squared gradients over the segments that begin at ``starts``."""
    observed = copy.deepcopy(network)
    parameters = list(observed.parameters())
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    for start in starts.tolist():
        raise_if_cancelled()
        state: Any = observed.initial_state(1)
        if start > 0:
            state = observed.advance_state(stream[None, max(start - _WARMUP, 0) : start], state)
        observed.compute_gradients(*_segment(stream, start, length), state)
        for square, parameter in zip(squares, parameters, strict=True):
            if parameter.grad is not None:
                square.addcmul_(parameter.grad, parameter.grad)
    return squares


def trained_weights(network: Network) -> list[Tensor]:
    """Return copies of the parameters, in their order."""
    return [parameter.detach().clone() for parameter in network.parameters()]


@without_subnormals()
def dynamic_nll(
    network: Network, ids: NDArray[np.integer], *, update_every: int, update: Callable[[list[Parameter]], None]
) -> Nats:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, with an update after every ``update_every``.

    Each segment is scored before the network learns from it; ``update`` gets the parameters with their gradients.
    ``network`` itself is not changed.
    """
    adapted = copy.deepcopy(network)
    parameters = list(adapted.parameters())
    stream = _as_stream(ids, parameters)
    state: Any = adapted.initial_state(1)
    segments = []
    for start in range(0, len(stream) - 1, update_every):
        raise_if_cancelled()
        inputs, targets = _segment(stream, start, update_every)
        nats, state = adapted.compute_gradients(inputs, targets, state)
        segments.append(in_double(nats[0]).cpu().numpy())
        with torch.no_grad():
            update(parameters)
    return np.concatenate(segments) if segments else np.empty(0)


def _as_stream(ids: NDArray[np.integer], parameters: list[Parameter]) -> Tensor:
    return torch.from_numpy(np.asarray(ids, np.int64)).to(parameters[0].device)


def _segment(stream: Tensor, start: int, length: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of the segment that begins at ``start``, each ``(1, T)``."""
    end = min(start + length, len(stream) - 1)
    return stream[None, start:end], stream[None, start + 1 : end + 1]
