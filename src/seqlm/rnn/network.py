"""The interface of networks: what training, scoring and generation need of them."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.core.metrics import Nll
from seqlm.core.threads import imap
from seqlm.rnn.array_network import ArrayNetwork, Ids, Logits, tokens_at_once

T = TypeVar("T")
R = TypeVar("R")

_DOUBLES_AT_ONCE = 1 << 21
"""Logits that are in double precision at a time."""

State = Any
"""What a network carries from step to step, such as hidden states or cached keys and values: a tensor, or lists and
tuples of states. Only the network itself looks inside."""
Weights = dict[str, Tensor]


class Noise(Protocol):
    """The random factors that a training draws anew for each minibatch."""

    def dropout_mask(self, hidden: Tensor, dropout: float) -> Tensor:
        """Return factors of shape ``(B, 1, size)`` for a tensor of shape ``(B, T, size)``: 0 or 1 / (1 - dropout)."""

    def bptt_keep(self, num_steps: int) -> Tensor | None:
        """Return factors of shape ``(T, B)`` on the gradient that each step sends back (8.7.8); None: all are 1."""


class RandomNoise:
    """Dropout masks, one for all steps of a minibatch, and randomized truncation."""

    def __init__(
        self, generator: torch.Generator, batch_size: int, rows: slice, keep_probability: float | None = None
    ) -> None:
        """Draw for a minibatch of ``batch_size`` rows, of which this process has ``rows``.

        ``keep_probability``: chance that the gradient passes to the step before; None: it always does.
        """
        self._generator, self._batch_size, self._rows = generator, batch_size, rows
        self._keep_probability = keep_probability

    def dropout_mask(self, hidden: Tensor, dropout: float) -> Tensor:
        """Return factors of shape ``(B, 1, size)``: 0 or 1 / (1 - dropout)."""
        mask = hidden.new_empty(self._batch_size, 1, hidden.shape[2])
        return mask.bernoulli_(1 - dropout, generator=self._generator).div_(1 - dropout)[self._rows]

    def bptt_keep(self, num_steps: int) -> Tensor | None:
        """Return factors of shape ``(T, B)``: 0, or 1 / ``keep_probability`` if the gradient passes (8.7.8)."""
        chance = self._keep_probability
        if chance is None:
            return None
        keep = torch.empty(num_steps, self._batch_size, device=self._generator.device)
        return keep.bernoulli_(chance, generator=self._generator).div_(chance)[:, self._rows]


def nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -log p of ``targets`` (...) under ``logits`` (..., V), in double precision and on the CPU."""
    if logits.device.type != "cuda":  # other devices may lack double precision
        logits, targets = logits.cpu(), targets.cpu()
    num_rows = max(_DOUBLES_AT_ONCE // logits.shape[-1], 1)
    parts = zip(torch.split(logits.flatten(0, -2), num_rows), torch.split(targets.flatten(), num_rows), strict=True)
    losses = [F.cross_entropy(rows.double(), wanted, reduction="none").cpu() for rows, wanted in parts]
    return torch.cat(losses).view(targets.shape)


class Network(nn.Module, ABC):
    """A model of the next token over a vocabulary of V tokens, for B rows of text at once.

    A subclass needs the three abstract methods. The others are built on them; a subclass may have faster ones.
    """

    vocab_size: int
    engine = "framework"
    """What computes the network: ``framework``, or ``compiled`` for compiled loops."""

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def arrays(self) -> ArrayNetwork:
        """The same network, with the same weights, for arrays."""
        return _TensorNetwork(self)

    @abstractmethod
    def initial_state(self, batch_size: int) -> State:
        """Return the zero state of ``batch_size`` rows."""

    @abstractmethod
    def forward(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last step."""

    @abstractmethod
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: State, noise: Noise | None = None
    ) -> tuple[Tensor, State]:
        """Set the parameters' gradients to those of the mean loss; return each target's -log p and the new state.

        ``inputs``, ``targets`` and the result are ``(B, T)``. The given state is a constant: truncated
        backpropagation through time. Without ``noise`` nothing is dropped.
        """

    @torch.no_grad()
    def token_nll(self, ids: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Return -log p of targets ``(B, T)``, on the CPU in double precision, and the state after ids ``(B, T)``.

        The logits of a large vocabulary are never in memory for all tokens at once.
        """
        num_steps, found = max(tokens_at_once(self.vocab_size) // len(ids), 1), []
        for inputs, wanted in zip(torch.split(ids, num_steps, 1), torch.split(targets, num_steps, 1), strict=True):
            logits, state = self(inputs, state)
            found.append(nll(logits, wanted))
        return torch.cat(found, 1), state

    @torch.no_grad()
    def advance_state(self, ids: Tensor, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        return self(ids, state)[1]

    @torch.no_grad()
    def step_fn(self, state: State) -> Callable[[Tensor], Tensor]:
        """Return a function from one token per row, ``(B,)``, to logits ``(B, V)``; it keeps the state.

        Its next call may overwrite the logits.
        """

        def step(ids: Tensor) -> Tensor:
            nonlocal state
            logits, state = self(ids[:, None], state)
            last: Tensor = logits[:, 0]
            return last

        return step

    def named_weights(self) -> Weights:
        """Return the weights by name, not as copies; tied weights come once."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def weights(self) -> Weights:
        """Return copies of the weights by name, on the CPU."""
        return {name: weight.cpu().clone() for name, weight in self.named_weights().items()}

    def load_weights(self, weights: Weights) -> None:
        """Copy weights in, as :meth:`weights` returns them. Raises KeyError for a missing one."""
        for name, weight in self.named_weights().items():
            weight.copy_(weights[name])

    def thread_team(self) -> AbstractContextManager[None]:
        """Keep the threads of a training ready inside this context. PyTorch's own need no such care."""
        return nullcontext()


class AutogradNetwork(Network):
    """A network whose gradients PyTorch finds by automatic differentiation."""

    @abstractmethod
    def forward(self, ids: Tensor, state: State, noise: Noise | None = None) -> tuple[Tensor, State]:
        """Do what :meth:`Network.forward` does; ``noise`` gives the dropout masks of a training."""

    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: State, noise: Noise | None = None
    ) -> tuple[Tensor, State]:
        """Do what :meth:`Network.compute_gradients` does. The new state is detached from the graph."""
        self.zero_grad(set_to_none=True)
        logits, new_state = self(inputs, state, noise)
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")  # (B * T,)
        torch.autograd.backward(losses.mean())
        return losses.detach().view(targets.shape), _detached(new_state)


def _detached(state: State) -> State:
    return state.detach() if isinstance(state, Tensor) else type(state)(_detached(part) for part in state)


class _TensorNetwork:
    """A network of PyTorch for arrays (:class:`~seqlm.rnn.array_network.ArrayNetwork`); its states remain tensors."""

    def __init__(self, network: Network) -> None:
        self._network, self.vocab_size = network, network.vocab_size
        self.initial_state = network.initial_state

    @torch.no_grad()
    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        logits, state = self._network(self._tensor(ids), state)
        return logits.cpu().numpy(), state

    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        nll, state = self._network.token_nll(self._tensor(ids), self._tensor(targets), state)
        return nll.numpy(), state

    def advance_state(self, ids: Ids, state: State) -> State:
        return self._network.advance_state(self._tensor(ids), state)

    def step_fn(self, state: State) -> Callable[[Ids], Logits]:
        step = self._network.step_fn(state)

        @torch.no_grad()
        def take_step(ids: Ids) -> Logits:
            logits: Logits = step(self._tensor(ids)).cpu().numpy()
            return logits

        return take_step

    @torch.no_grad()
    def continue_greedily(self, ids: Ids, state: State, num_preds: int) -> Ids:
        step, last = self._network.step_fn(state), self._tensor(ids)
        chosen = last.new_empty(len(ids), num_preds)
        for index in range(num_preds):
            last = chosen[:, index] = step(last)[:, 1:].argmax(1) + 1
        return chosen.cpu().numpy()

    def compute_gradients(self, inputs: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        nll, state = self._network.compute_gradients(self._tensor(inputs), self._tensor(targets), state)
        return nll.cpu().double().numpy(), state

    @property
    def weights(self) -> list[Tensor]:
        return [parameter.detach() for parameter in self._network.parameters()]

    @property
    def gradients(self) -> list[Tensor]:
        parameters = self._network.parameters()
        return [torch.zeros_like(one.detach()) if one.grad is None else one.grad for one in parameters]

    def dynamic_step(self, lr: float, scales: list[Tensor], trained: list[Tensor], pulls: list[Tensor]) -> None:
        for parameter, scale, wanted, pull in zip(self._network.parameters(), scales, trained, pulls, strict=True):
            if parameter.grad is not None:
                weight = parameter.detach()
                weight.addcdiv_(parameter.grad, scale, value=-lr).lerp_(wanted, pull)

    def copy(self) -> Self:
        return type(self)(copy.deepcopy(self._network))

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        num_threads = torch.get_num_threads() if self._network.device.type == "cpu" else 1
        if num_threads == 1:
            yield from map(function, items)
            return
        # A single text hardly gives PyTorch more than one thread's work: each item is computed by one thread.
        torch.set_num_threads(1)
        try:
            yield from imap(function, items, num_threads)
        finally:
            torch.set_num_threads(num_threads)

    @contextmanager
    def without_subnormals(self) -> Iterator[None]:
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_flush_denormal(False)

    def _tensor(self, ids: Ids) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(ids, np.int64)).to(self._network.device)
