"""The RNN of section 8.5, from its equations, with the backward pass of section 8.7.

    H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h)        (8.4.5)
    O_t = H_t W_hq + b_q                            (8.4.6)

The gradients are computed by (8.7.14)-(8.7.16) over preallocated buffers instead of by
automatic differentiation: inside the loops over time stands one matrix product a step,
everything else is done for all steps at once.

On a CPU, in single precision, the same equations run as compiled loops
(:mod:`seqlm.rnn.compiled`); what stands here runs on any device.
"""

import itertools
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqlm.rnn.compiled.cells import CELLS
from seqlm.rnn.compiled.parameters import NOWHERE, NetworkSpec
from seqlm.rnn.compiled_rnn import CompiledRNN
from seqlm.rnn.network import Draws

State = Tensor
_INIT_STD = 0.01
"""Standard deviation of the initial weights in the book."""


class ScratchRNN(CompiledRNN):
    """A character RNN of one layer, without automatic differentiation.

    Shapes: V vocabulary, h hidden units, B lanes, T steps. Parameters: ``W_xh`` (V, h),
    ``W_hh`` (h, h), ``b_h`` (h,), ``W_hq`` (h, V), ``b_q`` (V,). The state is ``(B, h)``.
    """

    def __init__(
        self, vocab_size: int, num_hiddens: int, activation: Literal["tanh", "relu"], generator: torch.Generator
    ) -> None:
        """Draw the weights from N(0, 0.01) with ``generator``; biases are zero."""
        shapes = {
            "W_xh": (vocab_size, num_hiddens),
            "W_hh": (num_hiddens, num_hiddens),
            "b_h": (num_hiddens,),
            "W_hq": (num_hiddens, vocab_size),
            "b_q": (vocab_size,),
        }
        super().__init__(vocab_size, num_hiddens, shapes, cell=activation, num_layers=1)
        for name, view in self.named_weights().items():
            if name.startswith("W"):
                # In single precision, PyTorch's numbers depend on the processor.
                view.copy_(torch.empty_like(view, dtype=torch.float64).normal_(0, _INIT_STD, generator=generator))
        self.activation = activation
        self._activate = torch.Tensor.tanh_ if activation == "tanh" else torch.Tensor.relu_
        self._buffers_of_shape: tuple[int, int] | None = None

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state, shape ``(batch_size, h)``."""
        return self.flat.detach().new_zeros(batch_size, self.num_hiddens)

    def _spec(self) -> NetworkSpec:
        cell, places = CELLS[self._cell], self._places()
        return NetworkSpec(
            vocab_size=self.vocab_size,
            num_hiddens=self.num_hiddens,
            embedding_size=0,
            cell=cell.number,
            input_blocks=np.array(cell.input_blocks),
            state_blocks=np.array(cell.state_blocks),
            first_state_block=cell.first_state_block,
            layers=np.array([[places["W_xh"], places["W_hh"], places["b_h"], NOWHERE]]),
            embedding=NOWHERE,
            outputs=places["W_hq"],
            output_bias=places["b_q"],
            has_input_rows=True,
        )

    def _outputs(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        weights = self.named_weights()
        hiddens = self._run(
            weights, ids.T, state, torch.empty(ids.shape[1] + 1, *state.shape, device=state.device, dtype=state.dtype)
        )
        return hiddens[1:], hiddens[-1].clone()

    def _logits(self, outputs: Tensor) -> Tensor:
        weights = self.named_weights()
        logits = torch.addmm(weights["b_q"], outputs.flatten(0, -2), weights["W_hq"])  # (T * B, V)
        return logits.view(*outputs.shape[:-1], -1)

    def _plain_step_fn(self, state: State) -> Callable[[Tensor], Tensor]:
        weights = self.named_weights()
        inputs, w_hh, w_hq, b_q = weights["W_xh"] + weights["b_h"], weights["W_hh"], weights["W_hq"], weights["b_q"]
        before, after = state.clone(), torch.empty_like(state)
        logits = state.new_empty(len(state), self.vocab_size)

        def step(ids: Tensor) -> Tensor:
            nonlocal before, after
            torch.index_select(inputs, 0, ids, out=after)
            self._activate(after.addmm_(before, w_hh))
            before, after = after, before
            return torch.addmm(b_q, before, w_hq, out=logits)

        return step

    def _run(self, weights: dict[str, Tensor], ids: Tensor, state: State, hiddens: Tensor) -> Tensor:
        """Fill ``hiddens`` (T + 1, B, h) with the states before and after each step; ``ids`` is (T, B)."""
        hiddens[0] = state
        # A one-hot vector times W_xh is a row of W_xh.
        torch.index_select(
            weights["W_xh"] + weights["b_h"], 0, ids.reshape(-1), out=hiddens[1:].view(-1, self.num_hiddens)
        )
        w_hh, steps = weights["W_hh"], hiddens.unbind(0)
        for before, after in itertools.pairwise(steps):
            self._activate(after.addmm_(before, w_hh))
        return hiddens

    def _draw(self, draws: Draws | None, lanes: int, num_steps: int) -> tuple[list[Tensor], Tensor | None]:  # noqa: ARG002
        """Return factors of shape ``(T, B)`` on what step t sends back to step t - 1: randomized truncation (8.7.8)."""
        return [], None if draws is None else draws.keep(num_steps)

    def _find_gradients(
        self,
        inputs: Tensor,
        targets: Tensor,
        state: State,
        masks: list[Tensor],  # noqa: ARG002
        keep: Tensor | None,
    ) -> tuple[Tensor, State]:
        batch_size, num_steps = inputs.shape
        weights, grads = self.named_weights(), self._views(self._gradient())
        hiddens, deltas = self._workspace(num_steps, batch_size)
        self._run(weights, inputs.T, state, hiddens)
        outputs = hiddens[1:].flatten(0, 1)  # (T * B, h)
        logits = torch.addmm(weights["b_q"], outputs, weights["W_hq"])  # (T * B, V)
        log_probs = torch.log_softmax(logits, 1)
        wanted = targets.T.reshape(-1, 1)
        nats = -log_probs.gather(1, wanted).view(num_steps, batch_size)

        # (8.7.11): the gradient of the mean loss by the logits is (softmax - one-hot) / (T * B).
        d_logits = log_probs.exp_()
        d_logits.scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=d_logits.dtype))
        d_logits.mul_(1 / wanted.numel())
        torch.mm(outputs.T, d_logits, out=grads["W_hq"])
        torch.sum(d_logits, 0, out=grads["b_q"])
        torch.mm(d_logits, weights["W_hq"].T, out=deltas.view(-1, self.num_hiddens))
        self._backward_through_time(weights["W_hh"], hiddens, deltas, keep)
        flat_deltas = deltas.view(-1, self.num_hiddens)  # (T * B, h)
        torch.mm(hiddens[:-1].flatten(0, 1).T, flat_deltas, out=grads["W_hh"])
        torch.sum(flat_deltas, 0, out=grads["b_h"])
        grads["W_xh"].zero_().index_add_(0, inputs.T.reshape(-1), flat_deltas)
        return nats.T, hiddens[-1].clone()

    def _backward_through_time(self, w_hh: Tensor, hiddens: Tensor, deltas: Tensor, keep: Tensor | None) -> None:
        """Turn ``deltas`` from the outputs' share of dL/dH_t into dL/dZ_t, by (8.7.14).

        Z_t is what the activation is applied to; the recursion runs from the last step.
        """
        # A product with a transposed right side is slower: transpose once, not every step.
        w_back = w_hh.T.contiguous()
        if self.activation == "tanh":
            slopes = torch.addcmul(torch.ones_like(deltas), hiddens[1:], hiddens[1:], value=-1)
        else:
            slopes = (hiddens[1:] > 0).to(deltas.dtype)
        steps, slope_steps = deltas.unbind(0), slopes.unbind(0)
        steps[-1].mul_(slope_steps[-1])
        for t in range(len(steps) - 2, -1, -1):
            later = steps[t + 1] if keep is None else steps[t + 1] * keep[t + 1, :, None]
            steps[t].addmm_(later, w_back).mul_(slope_steps[t])

    def _workspace(self, num_steps: int, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return buffers for the states (T + 1, B, h) and their gradients (T, B, h), kept between calls."""
        if self._buffers_of_shape != (num_steps, batch_size):
            self._hiddens = self.flat.detach().new_empty(num_steps + 1, batch_size, self.num_hiddens)
            self._deltas = torch.empty_like(self._hiddens[1:])
            self._buffers_of_shape = (num_steps, batch_size)
        return self._hiddens, self._deltas
