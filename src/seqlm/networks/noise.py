"""The random factors that a training run draws anew for each minibatch."""

from typing import Protocol

import torch
from torch import Tensor


class Noise(Protocol):
    """Dropout masks and truncation of a minibatch."""

    def dropout_mask(self, size: int, dropout: float) -> Tensor:
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

    def dropout_mask(self, size: int, dropout: float) -> Tensor:
        """Return factors of shape ``(B, 1, size)``: 0 or 1 / (1 - dropout)."""
        return self._draw((self._batch_size, 1, size), 1 - dropout)[self._rows]

    def bptt_keep(self, num_steps: int) -> Tensor | None:
        """Return factors of shape ``(T, B)``: 0, or 1 / ``keep_probability`` if the gradient passes (8.7.8)."""
        chance = self._keep_probability
        return None if chance is None else self._draw((num_steps, self._batch_size), chance)[:, self._rows]

    def _draw(self, shape: tuple[int, ...], chance: float) -> Tensor:
        factors = torch.empty(shape, device=self._generator.device)
        return factors.bernoulli_(chance, generator=self._generator).div_(chance)
