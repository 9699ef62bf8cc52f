"""What a recurrent network is to those who train it, score with it and let it write."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

import torch
from torch import Tensor

State = Any
"""What a network carries from step to step; only the network itself looks inside."""
Weights = dict[str, Tensor]


class Draws(Protocol):
    """What is drawn anew for each minibatch of a training."""

    def mask(self, hidden: Tensor, dropout: float) -> Tensor:
        """Return factors of shape ``(B, 1, size)`` for a tensor of shape ``(B, T, size)``: 0 or 1 / (1 - dropout)."""
        ...

    def keep(self, num_steps: int) -> Tensor | None:
        """Return factors of shape ``(T, B)`` on the gradient that each step sends back (8.7.8); None: all are 1."""
        ...


class RandomNoise:
    """Dropout masks, one for all steps of a minibatch, and randomized truncation."""

    def __init__(
        self, generator: torch.Generator, num_lanes: int, share: slice, keep_probability: float | None = None
    ) -> None:
        """Draw for ``num_lanes`` lanes, of which this process has a ``share``.

        ``keep_probability``: chance that the gradient goes on to the step before; None: it always does.
        """
        self._generator, self._num_lanes, self._share = generator, num_lanes, share
        self._keep_probability = keep_probability

    def mask(self, hidden: Tensor, dropout: float) -> Tensor:
        """Return factors of shape ``(B, 1, size)``: 0 or 1 / (1 - dropout)."""
        mask = hidden.new_empty(self._num_lanes, 1, hidden.shape[2])
        return mask.bernoulli_(1 - dropout, generator=self._generator).div_(1 - dropout)[self._share]

    def keep(self, num_steps: int) -> Tensor | None:
        """Return factors of shape ``(T, B)``: the gradient goes on with a chance, and is then divided by it (8.7.8)."""
        chance = self._keep_probability
        if chance is None:
            return None
        keep = torch.empty(num_steps, self._num_lanes, device=self._generator.device)
        return keep.bernoulli_(chance, generator=self._generator).div_(chance)[:, self._share]


class Network(Protocol):
    """A model of the next token over a vocabulary of V tokens, for B lanes of text at once."""

    vocab_size: int

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state of ``batch_size`` lanes."""
        ...

    def __call__(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        ...

    def nats(self, ids: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Return -log p of targets ``(B, T)``, on the CPU in double precision, and the state after ids ``(B, T)``.

        Made for large vocabularies: never do the logits of all tokens stand in memory together.
        """
        ...

    def advance_state(self, ids: Tensor, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        ...

    def step_fn(self, state: State) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane ``(B,)`` to logits ``(B, V)``; the state goes on inside it."""
        ...

    def continue_greedily(self, ids: Tensor, state: State, num_preds: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` ``(B,)``, each the likeliest but token 0."""
        ...

    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: State, draws: Draws | None = None
    ) -> tuple[Tensor, State]:
        """Set the parameters' gradients to those of the mean loss; return each target's -log p and the new state.

        ``inputs``, ``targets``, the nats: ``(B, T)``. The state that comes in is a constant:
        truncated backpropagation through time.
        """
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Return what the optimiser changes."""
        ...

    def weights(self) -> Weights:
        """Return copies of the weights by name, on the CPU; tied weights come once."""
        ...

    def load_weights(self, weights: Weights) -> None:
        """Copy weights in, as :meth:`weights` returns them."""
        ...

    def team(self) -> AbstractContextManager[None]:
        """Keep the threads of a training ready inside this context."""
        ...

    def to(self, device: torch.device) -> Self:
        """Move to a device."""
        ...

    def eval(self) -> Self:
        """Get ready to score text."""
        ...


def continue_by_steps(network: Network, ids: Tensor, state: State, num_preds: int) -> Tensor:
    """Return what :meth:`Network.continue_greedily` does, one step at a time."""
    step, chosen = network.step_fn(state), [ids]
    for _ in range(num_preds):
        logits = step(chosen[-1])
        chosen.append(logits[:, 1:].argmax(1) + 1)
    return torch.stack(chosen[1:], 1) if num_preds else ids.new_empty(len(ids), 0)
