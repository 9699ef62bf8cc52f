"""Networks that take and return arrays, without PyTorch: their interface, and scoring and generation with them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp
from seqlm.core.metrics import Nll

T = TypeVar("T")
R = TypeVar("R")

Ids = NDArray[np.int64]
Logits = NDArray[np.float32]
State = Any
"""What a network carries from step to step. Only the network itself looks inside."""
Weights = list[Any]
"""Parameters, or numbers of the same shapes: arrays, or tensors of a network that PyTorch computes. Both add, multiply
and divide in the same way."""

_LOGITS_AT_ONCE = 1 << 22
"""Most logits in memory at once: with a large vocabulary those of a whole text would fill it."""
_CHUNK = 4096
"""Tokens that are read at once."""


class ArrayNetwork(Protocol):
    """A model of the next token over a vocabulary of V tokens, for B rows of text at once.

    All methods raise IndexError for a token outside the vocabulary.
    """

    vocab_size: int

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state of ``batch_size`` rows."""

    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        The logits of a large vocabulary are never in memory for all tokens at once.
        """

    def advance_state(self, ids: Ids, state: State) -> State:
        """Return the state after ids ``(B, T)``."""

    def step_fn(self, state: State) -> Callable[[Ids], Logits]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the state."""

    def continue_greedily(self, ids: Ids, state: State, num_preds: int) -> Ids:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` ``(B,)``, each the most likely except token 0."""

    def compute_gradients(self, inputs: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        """Set the gradients of the mean loss; return each target's -log p, ``(B, T)``, and the new state."""

    @property
    def weights(self) -> Weights:
        """The parameters, not as copies."""

    @property
    def gradients(self) -> Weights:
        """Their gradients."""

    def dynamic_step(self, lr: float, scales: Weights, trained: Weights, pulls: Weights) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += pull (trained - w)."""

    def copy(self) -> Self:
        """Return a copy with weights of its own, which one thread computes."""

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, in order: as many at once as the network has threads."""

    def without_subnormals(self) -> AbstractContextManager[None]:
        """Treat numbers below 1.2e-38 as zero in this thread, if the processor can.

        They change no weight, and a processor may take a hundred times as long for them. They arise from the tiny
        probabilities of most tokens of a large vocabulary, and from states of a network that keeps learning.
        """


def tokens_at_once(vocab_size: int) -> int:
    """Return for how many tokens, at least one, the logits may be in memory at once."""
    return max(_LOGITS_AT_ONCE // vocab_size, 1)


def probabilities(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the probabilities of all tokens under ``logits`` (N, V)."""
    wide = np.asarray(logits, np.float64)
    found = exp(wide - wide.max(1, keepdims=True))
    found /= found.sum(1, keepdims=True)
    return found


def stream_nll(network: ArrayNetwork, ids: NDArray[np.integer], *, chunk: int = _CHUNK) -> Nll:
    """Return -log p of tokens 2..N of one stream, each given all before it; shape ``(N - 1,)``.

    The network starts from the zero state, which is carried over chunks of ``chunk`` tokens.
    """
    return rows_nll(network, np.asarray(ids, np.int64)[None], chunk).reshape(-1)


def rows_nll(network: ArrayNetwork, rows: Ids, num_steps: int) -> Nll:
    """Return -log p of tokens 2..T of ``rows`` (B, T), each from the zero state; shape ``(B, T - 1)``.

    The rows are read together, ``num_steps`` tokens of each at a time.
    """
    state, found = network.initial_state(len(rows)), np.empty((len(rows), max(rows.shape[1] - 1, 0)))
    for start in range(0, found.shape[1], num_steps):
        end = min(start + num_steps, found.shape[1])
        found[:, start:end], state = network.token_nll(rows[:, start:end], rows[:, start + 1 : end + 1], state)
    return found


def continue_prefixes(network: ArrayNetwork, prefixes: Ids, num_preds: int) -> Ids:
    """Return the ``num_preds`` most likely tokens after each of some prefixes ``(B, T)``, as in section 8.5.

    Their shape is ``(B, num_preds)``. The state warms up on the prefixes. ``<unk>``, token 0, is never chosen.
    """
    logits, state = network.logits(prefixes, network.initial_state(len(prefixes)))
    first = logits[:, -1, 1:].argmax(1) + 1
    return np.column_stack([first, network.continue_greedily(first, state, num_preds - 1)])
