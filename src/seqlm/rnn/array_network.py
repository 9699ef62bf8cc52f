"""The interface of networks for scoring, dynamic evaluation and generation: arrays in, arrays out, without PyTorch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlm.core.metrics import Nats

T = TypeVar("T")
R = TypeVar("R")

Ids = NDArray[np.int64]
Logits = NDArray[np.float32]
State = Any
"""What a network carries from step to step. Only the network itself looks inside."""
Weights = list[Any]
"""Parameters, or numbers of the same shapes: arrays, or tensors of a network that PyTorch computes. Both add, multiply
and divide in the same way."""


class HasArrays(Protocol):
    """A network that may itself work with tensors."""

    @property
    def arrays(self) -> "ArrayNetwork":
        """The same network, with the same weights, for arrays."""
        ...


class ArrayNetwork(HasArrays, Protocol):
    """A model of the next token over a vocabulary of V tokens, for B rows of text at once.

    All methods raise IndexError for a token outside the vocabulary.
    """

    vocab_size: int

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state of ``batch_size`` rows."""
        ...

    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        ...

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nats, State]:
        """Return -log p of targets ``(B, T)``, and the state after ids ``(B, T)``.

        The logits of a large vocabulary are never in memory for all tokens at once.
        """
        ...

    def advance_state(self, ids: Ids, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        ...

    def step_fn(self, state: State) -> Callable[[Ids], Logits]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the state."""
        ...

    def continue_greedily(self, ids: Ids, state: State, num_preds: int) -> Ids:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` ``(B,)``, each the most likely except token 0."""
        ...

    def compute_gradients(self, inputs: Ids, targets: Ids, state: State) -> tuple[Nats, State]:
        """Set the gradients of the mean loss; return each target's -log p, ``(B, T)``, and the new state."""
        ...

    @property
    def weights(self) -> Weights:
        """The parameters, not as copies."""
        ...

    @property
    def gradients(self) -> Weights:
        """Their gradients."""
        ...

    def adapt(self, lr: float, scales: Weights, trained: Weights, pulls: Weights) -> None:
        """Change the weights by their gradients: w -= lr g / scale, then w += pull (trained - w)."""
        ...

    def copy(self) -> Self:
        """Return a copy with weights of its own, which one thread computes."""
        ...

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for each item, in order: as many at once as the network has threads."""
        ...

    def without_subnormals(self) -> AbstractContextManager[None]:
        """Treat numbers below 1.2e-38 as zero in this thread, if the processor can.

        They change no weight, and a processor may take a hundred times as long for them. They arise from the tiny
        probabilities of most tokens of a large vocabulary, and from states of a network that keeps learning.
        """
        ...
