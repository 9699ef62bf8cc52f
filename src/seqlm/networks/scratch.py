"""The RNN of section 8.5, from its equations, with the backward pass of section 8.7.

    H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h)        (8.4.5)
    O_t = H_t W_hq + b_q                            (8.4.6)

The gradients are computed by (8.7.14)-(8.7.16) instead of by automatic differentiation: the loops
over time contain one matrix product per step, everything else is done for all steps at once.

This module runs on any device. On a CPU, the same equations run as compiled loops
(:mod:`seqlm.networks.compiled`).
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.networks.network import DropoutMask, Factors, Ids
from seqlm.networks.settings import NetworkSettings
from seqlm.networks.torch_network import TorchNetwork


class ScratchRNN(TorchNetwork):
    """A character RNN of one layer, without automatic differentiation.

    Shapes: V vocabulary, h hidden units, B batch rows, T steps. Parameters: ``W_xh`` (V, h),
    ``W_hh`` (h, h), ``b_h`` (h,), ``W_hq`` (h, V), ``b_q`` (V,). The state is ``(B, h)``.
    """

    def __init__(self, settings: NetworkSettings, vocab_size: int) -> None:
        """A network whose weights are zero."""
        super().__init__()
        self.vocab_size, self.num_hiddens = vocab_size, settings.num_hiddens
        self.activation, num_hiddens = settings.activation, settings.num_hiddens
        self.W_xh = nn.Parameter(torch.zeros(vocab_size, num_hiddens))
        self.W_hh = nn.Parameter(torch.zeros(num_hiddens, num_hiddens))
        self.b_h = nn.Parameter(torch.zeros(num_hiddens))
        self.W_hq = nn.Parameter(torch.zeros(num_hiddens, vocab_size))
        self.b_q = nn.Parameter(torch.zeros(vocab_size))
        self._activate = torch.Tensor.tanh_ if self.activation == "tanh" else torch.Tensor.relu_

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state, shape ``(batch_size, h)``."""
        return self.b_h.detach().new_zeros(batch_size, self.num_hiddens)

    @torch.no_grad()
    def forward(
        self,
        ids: Tensor,
        state: Tensor,
        draw_mask: DropoutMask | None = None,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last
        step; no dropout."""
        _, logits, after = self._run(ids.T, state)
        return logits.view(*ids.T.shape, -1).transpose(0, 1), after

    def _run(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the states before and after each step (T + 1, B, h), logits (T B, V), and the last
        state.

        ``ids`` is (T, B).
        """
        hiddens = state.new_empty(len(ids) + 1, *state.shape)
        hiddens[0] = state
        # A one-hot vector times W_xh is a row of W_xh.
        hiddens[1:] = F.embedding(ids, self.W_xh + self.b_h)
        for before, after in itertools.pairwise(hiddens.unbind(0)):
            self._activate(after.addmm_(before, self.W_hh))
        outputs = hiddens[1:].flatten(0, 1)  # (T * B, h)
        logits = torch.addmm(self.b_q, outputs, self.W_hq)  # (T * B, V)
        return hiddens, logits, hiddens[-1].clone()

    @torch.no_grad()
    def compute_gradients(
        self,
        inputs: Ids,
        targets: Ids,
        state: Tensor,
        draw_mask: DropoutMask | None = None,  # noqa: ARG002
        gradient_mask: Factors | None = None,
    ) -> tuple[Tensor, Tensor]:
        steps = self.tensor(inputs).T  # (T, B)
        expected = self.tensor(targets).T.flatten()  # (T * B,)
        hiddens, logits, after = self._run(steps, state)
        outputs = hiddens[1:].flatten(0, 1)  # (T * B, h)
        nll = F.cross_entropy(logits, expected, reduction="none")
        # The gradient of its mean: (softmax - one-hot) / number of targets (8.7.11).
        d_logits = logits.softmax(1)
        d_logits[torch.arange(len(nll)), expected] -= 1
        d_logits /= len(nll)
        self.W_hq.grad, self.b_q.grad = outputs.T @ d_logits, d_logits.sum(0)
        deltas = (d_logits @ self.W_hq.T).view_as(hiddens[1:])  # (T, B, h)
        mask = None if gradient_mask is None else torch.from_numpy(gradient_mask).to(self.device)
        self._backward_through_time(hiddens, deltas, mask)
        deltas = deltas.flatten(0, 1)  # (T * B, h)
        self.W_hh.grad, self.b_h.grad = hiddens[:-1].flatten(0, 1).T @ deltas, deltas.sum(0)
        self.W_xh.grad = torch.zeros_like(self.W_xh).index_add_(0, steps.reshape(-1), deltas)
        return nll.view_as(steps).T, after

    def _backward_through_time(self, hiddens: Tensor, deltas: Tensor, mask: Tensor | None) -> None:
        """Turn ``deltas`` from the outputs' part of dL/dH_t into dL/dZ_t, by (8.7.14).

        Z_t is what the activation is applied to; the recursion runs from the last step. ``mask``
        (T, B) scales what each step sends back: randomized truncation (8.7.8).
        """
        # A product with a transposed right side is slower: transpose once, not every step.
        w_back = self.W_hh.T.contiguous()
        if self.activation == "tanh":
            slopes = torch.addcmul(torch.ones_like(deltas), hiddens[1:], hiddens[1:], value=-1)
        else:
            slopes = (hiddens[1:] > 0).to(deltas.dtype)
        steps, slope_steps = deltas.unbind(0), slopes.unbind(0)
        steps[-1].mul_(slope_steps[-1])
        for t in range(len(steps) - 2, -1, -1):
            later = steps[t + 1] if mask is None else steps[t + 1] * mask[t + 1, :, None]
            steps[t].addmm_(later, w_back).mul_(slope_steps[t])
