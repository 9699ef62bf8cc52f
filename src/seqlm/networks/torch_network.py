"""Networks that PyTorch computes."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.core.metrics import Nll
from seqlm.core.optimizer import Optimizer
from seqlm.core.threads import R, T, imap
from seqlm.networks.network import (
    DropoutMask,
    Factors,
    Ids,
    Logits,
    Network,
    OptimizerName,
    State,
    map_state,
)

_LOGITS_AT_ONCE = 1 << 22
"""Most logits in memory at once: with a large vocabulary those of a whole text would fill it."""
_MAX_STEPS = 4096
"""Most tokens of a row that are read at once."""


class TorchNetwork(nn.Module, Network):
    """A network of PyTorch's tensors, whose gradients PyTorch finds by automatic differentiation.

    A subclass needs ``initial_state`` and ``forward``. The other methods are built on them; a
    subclass may have faster ones. States are tensors, or lists and tuples of states.
    """

    engine = "framework"
    dropout = 0.0

    @abstractmethod
    def forward(
        self, ids: Tensor, state: State, draw_mask: DropoutMask | None = None
    ) -> tuple[Tensor, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last
        step.

        ``draw_mask`` gives the dropout masks of a training run.
        """

    def drop(self, hidden: Tensor, draw_mask: DropoutMask | None) -> Tensor:
        """Return ``hidden`` (N, T, size) after dropout, with one mask for the N / B parts of each
        of B batch rows."""
        if draw_mask is None or self.dropout == 0:
            return hidden
        # (B, 1, size)
        mask = torch.from_numpy(draw_mask(hidden.shape[2], self.dropout)).to(hidden)
        return hidden * mask.repeat_interleave(len(hidden) // len(mask), 0)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    def tensor(self, ids: Ids) -> Tensor:
        """Return ids as a tensor on the device."""
        return torch.as_tensor(ids).to(self.device, torch.int64)

    @torch.no_grad()
    def logits(self, ids: Ids, state: State) -> tuple[Logits, State]:
        logits, state = self(self.tensor(ids), state)
        return logits.cpu().numpy(), state

    @torch.no_grad()
    def token_nll(self, ids: Ids, targets: Ids, state: State) -> tuple[Nll, State]:
        num_steps = max(min(_LOGITS_AT_ONCE // self.vocab_size // len(ids), _MAX_STEPS), 1)
        parts = (torch.split(self.tensor(tokens), num_steps, 1) for tokens in (ids, targets))
        losses = []
        for part, part_targets in zip(*parts, strict=True):
            logits, state = self(part, state)
            losses.append(nll(logits, part_targets))
        return torch.cat(losses, 1).numpy(), state

    def compute_gradients(
        self,
        inputs: Ids,
        targets: Ids,
        state: State,
        draw_mask: DropoutMask | None = None,
        gradient_mask: Factors | None = None,  # noqa: ARG002
    ) -> tuple[Tensor, State]:
        self.zero_grad(set_to_none=True)
        logits, new_state = self(self.tensor(inputs), state, draw_mask)
        losses = F.cross_entropy(
            logits.flatten(0, 1), self.tensor(targets).flatten(), reduction="none"
        )  # (B * T,)
        torch.autograd.backward(losses.mean())
        return losses.detach().view(inputs.shape), map_state(Tensor.detach, new_state)

    @property
    def weights(self) -> list[Tensor]:
        """The parameters."""
        return [parameter.detach() for parameter in self.parameters()]

    @property
    def gradients(self) -> list[Tensor]:
        """Their gradients."""
        parameters = self.parameters()
        return [torch.zeros_like(p.detach()) if p.grad is None else p.grad for p in parameters]

    def dynamic_step(
        self, lr: float, scales: list[Tensor], trained: list[Tensor], decay_rates: list[Tensor]
    ) -> None:
        numbers = zip(self.parameters(), scales, trained, decay_rates, strict=True)
        for parameter, scale, start, rate in numbers:
            if parameter.grad is not None:
                parameter.detach().addcdiv_(parameter.grad, scale, value=-lr).lerp_(start, rate)

    def start_training(self, optimizer: OptimizerName = "sgd", weight_decay: float = 0.0) -> None:
        self._optimizer = Optimizer(optimizer, self.parameters(), weight_decay)

    def clip_gradients(self, max_norm: float) -> Tensor:
        return nn.utils.clip_grad_norm_(self.parameters(), max_norm)

    def named_weights(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        num_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        if num_threads == 1:
            yield from map(function, items)
            return
        # A single text hardly gives PyTorch more than one thread's work: each item is computed by
        # one thread.
        torch.set_num_threads(1)
        try:
            yield from imap(function, items, num_threads)
        finally:
            torch.set_num_threads(num_threads)

    @contextmanager
    def flush_denormals(self) -> Iterator[None]:
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_flush_denormal(False)


def nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -log p of ``targets`` (...) under ``logits`` (..., V), in double precision and on the
    CPU."""
    if logits.device.type != "cuda":  # other devices may lack double precision
        logits, targets = logits.cpu(), targets.cpu()
    losses = F.cross_entropy(logits.flatten(0, -2).double(), targets.flatten(), reduction="none")
    return losses.cpu().view(targets.shape)
