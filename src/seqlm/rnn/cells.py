"""One step of an LSTM and of a GRU, from their equations, forward and backward.

X_t is the input of the step, H_{t-1} the state before it, * the product element by element. Each
gate has a product with the input and one with the state, each with its bias: A = X_t W_x + b_x and
S = H_{t-1} W_h + b_h, side by side in the order that the framework's layers use.

LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000):

    I, F, O = sigmoid(A + S)      G = tanh(A + S)
    C_t = F * C_{t-1} + I * G     H_t = O * tanh(C_t)

GRU (Cho et al. 2014, with the reset gate behind the product, as the framework has it):

    R, Z = sigmoid(A + S)         N = tanh(A + R * S)
    H_t = (1 - Z) * N + Z * H_{t-1}

A backward step gets dL/dH_t (and dL/dC_t) and returns dL/dA, dL/dS, and what goes to the state
before past S; the slopes of sigmoid and tanh are y (1 - y) and 1 - y^2.
"""

from typing import Protocol

import torch
from torch import Tensor


class Cell(Protocol):
    """A kind of cell. Shapes: B lanes, h hidden units, G gates, P parts of the state."""

    num_gates: int
    num_state_tensors: int
    """1: H alone; 2: H and C."""

    def forward(self, from_input: Tensor, from_state: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state after the step, ``(P, B, h)``, and what the way back needs.

        ``from_input``, ``from_state``: A and S, ``(B, G h)``; ``before``: ``(P, B, h)``.
        """
        ...

    def backward(self, d_after: Tensor, kept: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients by A and by S, ``(B, G h)``, and by the state before, but for S: ``(P, B, h)``."""
        ...


class LSTM:
    """Gates I, F, G, O."""

    num_gates = 4
    num_state_tensors = 2

    def forward(self, from_input: Tensor, from_state: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Take a step (:meth:`Cell.forward`)."""
        i, f, g, o = (from_input + from_state).chunk(4, 1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        memory = f * before[1] + i * g
        return torch.stack([o * torch.tanh(memory), memory]), torch.cat([i, f, g, o], 1)

    def backward(self, d_after: Tensor, kept: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Go back over a step (:meth:`Cell.backward`)."""
        i, f, g, o = kept.chunk(4, 1)
        seen = torch.tanh(after[1])
        d_hidden, d_memory = d_after[0], d_after[1] + d_after[0] * o * (1 - seen * seen)
        d_sum = torch.cat(
            [
                d_memory * g * i * (1 - i),
                d_memory * before[1] * f * (1 - f),
                d_memory * i * (1 - g * g),
                d_hidden * seen * o * (1 - o),
            ],
            1,
        )
        return d_sum, d_sum, torch.stack([torch.zeros_like(d_hidden), d_memory * f])


class GRU:
    """Gates R, Z, N."""

    num_gates = 3
    num_state_tensors = 1

    def forward(self, from_input: Tensor, from_state: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Take a step (:meth:`Cell.forward`)."""
        r_input, z_input, n_input = from_input.chunk(3, 1)
        r_state, z_state, n_state = from_state.chunk(3, 1)
        r, z = torch.sigmoid(r_input + r_state), torch.sigmoid(z_input + z_state)
        n = torch.tanh(n_input + r * n_state)
        return (1 - z) * n + z * before, torch.cat([r, z, n, n_state], 1)

    def backward(
        self,
        d_after: Tensor,
        kept: Tensor,
        before: Tensor,
        after: Tensor,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Go back over a step (:meth:`Cell.backward`)."""
        r, z, n, n_state = kept.chunk(4, 1)
        d_hidden = d_after[0]
        d_n = d_hidden * (1 - z) * (1 - n * n)
        d_z = d_hidden * (before[0] - n) * z * (1 - z)
        d_r = d_n * n_state * r * (1 - r)
        return torch.cat([d_r, d_z, d_n], 1), torch.cat([d_r, d_z, d_n * r], 1), d_after * z


CELLS: dict[str, Cell] = {"lstm": LSTM(), "gru": GRU()}
"""The kinds of cells by name."""
