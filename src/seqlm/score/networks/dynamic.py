"""Dynamic evaluation: a network that keeps learning from the text it has just predicted (Krause et al. 2018).

Two rules of learning. ``sgd`` takes a clipped step down the gradient. ``rms`` divides each
parameter's gradient by its root mean square over the training text, and pulls every parameter
back to its trained value, those with large gradients more strongly: text of long ago fades.
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
from seqlm.rnn.network import Network
from seqlm.rnn.threads import go_on, map_in_threads, threads_for

_EPSILON = 1e-5
"""Added to a root mean square before dividing by it."""
_SEGMENT_WARMUP = 64
"""Tokens that the state warms up on before a segment of train."""
_PARTS = 8
"""Parts that the segments of train are summed up in, for any number of threads: a sum has one order."""


@dataclass(frozen=True)
class SgdRule:
    """A step of SGD, its gradient clipped to the norm ``clip``."""

    lr: float
    clip: float

    @property
    def settings(self) -> dict[str, float]:
        """What may be chosen."""
        return {"lr": self.lr}

    def apply(self, parameters: list[Parameter]) -> None:
        """Change the parameters by their gradients."""
        torch.nn.utils.clip_grad_norm_(parameters, self.clip)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.add_(parameter.grad, alpha=-self.lr)


@dataclass(frozen=True)
class RmsRule:
    """A step scaled by the gradients' root mean squares, and a pull back to the trained weights."""

    lr: float
    decay: float
    """Share of the way back that a parameter of average root mean square goes at each step."""
    roots: list[Tensor]
    """Root mean squares, one tensor a parameter (:func:`gradient_roots`)."""
    trained: list[Tensor]

    @property
    def settings(self) -> dict[str, float]:
        """What may be chosen."""
        return {"lr": self.lr, "decay": self.decay}

    def apply(self, parameters: list[Parameter]) -> None:
        """Change the parameters by their gradients."""
        for parameter, scale, trained, pull in zip(parameters, self._scales, self.trained, self._pulls, strict=True):
            if parameter.grad is not None:
                parameter.addcdiv_(parameter.grad, scale, value=-self.lr)
                parameter.lerp_(trained, pull)

    @cached_property
    def _scales(self) -> list[Tensor]:
        return [root + _EPSILON for root in self.roots]

    @cached_property
    def _pulls(self) -> list[Tensor]:
        """The share of the way back for each parameter, at most the whole."""
        average = sum(float(root.sum()) for root in self.roots) / sum(root.numel() for root in self.roots)
        return [(root * (self.decay / (average or 1))).clamp_(max=1) for root in self.roots]


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Take numbers below 1.2e-38 for zero in here, where the processor can.

    They move no weight, and a processor may take a hundred times as long for them. Of a large vocabulary most tokens
    come to such probabilities, and a network that learns on may come to such states.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def gradient_roots(network: Network, ids: NDArray[np.integer], *, every: int, num_segments: int) -> list[Tensor]:
    """Return the root mean square of each parameter's gradient over segments of ``every`` tokens of a stream.

    ``num_segments`` of them, spread evenly over the stream, are looked at, each after some tokens of warm-up.
    """
    stream = _as_stream(ids, list(network.parameters()))
    starts = range(0, len(stream) - 1, every)
    chosen = sorted({int(index) for index in np.linspace(0, len(starts) - 1, min(num_segments, len(starts)))})
    parts = np.array_split(np.array([starts[index] for index in chosen], np.int64), _PARTS)
    sums = map_in_threads(partial(_sums_of_squares, network, stream, every), parts, threads_for(network))
    totals = [torch.zeros_like(parameter) for parameter in network.parameters()]
    for part in sums:
        for total, squares in zip(totals, part, strict=True):
            total += squares
    return [total.div_(max(len(chosen), 1)).sqrt_() for total in totals]


@without_subnormals()
def _sums_of_squares(network: Network, stream: Tensor, every: int, starts: NDArray[np.int64]) -> list[Tensor]:
    """Return the sums of each parameter's squared gradients over segments that begin at ``starts``."""
    observed = copy.deepcopy(network)
    parameters = list(observed.parameters())
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    for start in starts.tolist():
        go_on()
        state: Any = observed.initial_state(1)
        if start > 0:
            state = observed.advance_state(stream[None, max(start - _SEGMENT_WARMUP, 0) : start], state)
        observed.compute_gradients(*_segment(stream, start, every), state)
        for square, parameter in zip(squares, parameters, strict=True):
            if parameter.grad is not None:
                square.addcmul_(parameter.grad, parameter.grad)
    return squares


def trained_weights(network: Network) -> list[Tensor]:
    """Return copies of the parameters, in their order."""
    return [parameter.detach().clone() for parameter in network.parameters()]


@without_subnormals()
def dynamic_nll(
    network: Network, ids: NDArray[np.integer], *, every: int, apply: Callable[[list[Parameter]], None]
) -> Nats:
    """Return -log p of tokens 2..N of a stream, shape ``(N - 1,)``, adapting after every ``every`` tokens.

    Each segment is scored and then learned from by one step of ``apply``, which gets the
    parameters with their gradients; so every token is predicted before the model has learned from it.
    ``network`` itself stays as it is.
    """
    adapted = copy.deepcopy(network)
    parameters = list(adapted.parameters())
    stream = _as_stream(ids, parameters)
    state: Any = adapted.initial_state(1)
    pieces = []
    for start in range(0, len(stream) - 1, every):
        go_on()
        inputs, targets = _segment(stream, start, every)
        nats, state = adapted.compute_gradients(inputs, targets, state)
        pieces.append(in_double(nats[0]).cpu().numpy())
        with torch.no_grad():
            apply(parameters)
    return np.concatenate(pieces) if pieces else np.empty(0)


def _as_stream(ids: NDArray[np.integer], parameters: list[Parameter]) -> Tensor:
    return torch.from_numpy(np.asarray(ids, np.int64)).to(parameters[0].device)


def _segment(stream: Tensor, start: int, every: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of the segment that begins at ``start``, each ``(1, T)``."""
    end = min(start + every, len(stream) - 1)
    return stream[None, start:end], stream[None, start + 1 : end + 1]
