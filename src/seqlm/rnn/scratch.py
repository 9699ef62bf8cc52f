"""The RNN of section 8.5, from its equations, with the backward pass of section 8.7.

    H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h)        (8.4.5)
    O_t = H_t W_hq + b_q                            (8.4.6)

The gradients are computed by (8.7.14)-(8.7.16) over preallocated buffers instead of by
automatic differentiation: inside the loops over time stands one matrix product a step,
everything else is done for all steps at once. All parameters are views of one flat
tensor, and so are their gradients, so that clipping and the optimiser see one tensor.

On a CPU, in single precision, the same equations run as compiled loops
(:mod:`seqlm.rnn.compiled.kernels`); what stands here runs on any device.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from seqlm.rnn.compiled.kernels import Parameters
from seqlm.rnn.compiled.processor import has_fma
from seqlm.rnn.compiled.tensors import CompiledGradients, CompiledInference
from seqlm.rnn.network import Draws, Weights, continue_by_steps

State = Tensor
_INIT_STD = 0.01
"""Standard deviation of the initial weights in the book."""
_COMPILES_FROM = 128
"""Hidden units from which the compiled loops repay the seconds that compiling them takes in each process."""


class ScratchRNN(nn.Module):
    """A character RNN of one layer, without automatic differentiation.

    Shapes: V vocabulary, h hidden units, B lanes, T steps. Parameters: ``W_xh`` (V, h),
    ``W_hh`` (h, h), ``b_h`` (h,), ``W_hq`` (h, V), ``b_q`` (V,).
    """

    def __init__(
        self, vocab_size: int, num_hiddens: int, activation: Literal["tanh", "relu"], generator: torch.Generator
    ) -> None:
        """Draw the weights from N(0, 0.01) with ``generator``; biases are zero."""
        super().__init__()
        self.vocab_size, self.num_hiddens, self.activation = vocab_size, num_hiddens, activation
        self._shapes = {
            "W_xh": (vocab_size, num_hiddens),
            "W_hh": (num_hiddens, num_hiddens),
            "b_h": (num_hiddens,),
            "W_hq": (num_hiddens, vocab_size),
            "b_q": (vocab_size,),
        }
        flat = torch.zeros(sum(math.prod(shape) for shape in self._shapes.values()))
        self.flat = nn.Parameter(flat)
        for name, view in self._views(flat).items():
            if name.startswith("W"):
                # In single precision, PyTorch's numbers depend on the processor.
                view.copy_(torch.empty_like(view, dtype=torch.float64).normal_(0, _INIT_STD, generator=generator))
        self._activate = torch.Tensor.tanh_ if activation == "tanh" else torch.Tensor.relu_
        self._buffers_of_shape: tuple[int, int] | None = None
        self.compiles_from = _COMPILES_FROM
        self._num_threads = 1
        self._compiled: tuple[tuple[int, ...], CompiledGradients] | None = None
        self._packed: tuple[tuple[int, int], CompiledInference] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy starts with: not the threads, which belong to this one."""
        return self.__dict__ | {"_compiled": None, "_packed": None, "_num_threads": 1}

    @property
    def is_compiled(self) -> bool:
        """Whether compiled loops are used: on a CPU with FMA, in single precision, from ``compiles_from`` units on."""
        is_fitting = self.flat.device.type == "cpu" and self.flat.dtype == torch.float32
        return is_fitting and self.num_hiddens >= self.compiles_from and has_fma()

    @contextmanager
    def team(self) -> Iterator[None]:
        """Use PyTorch's number of threads for gradients in here, where PyTorch itself works with one.

        The threads of both wait for work awake, and would take the processors from each other.
        """
        num_threads = torch.get_num_threads()
        if not self.is_compiled or num_threads == 1:
            yield
            return
        self._num_threads = num_threads
        torch.set_num_threads(1)
        try:
            yield
        finally:
            if self._compiled is not None:
                self._compiled[1].stop()
            self._compiled, self._num_threads = None, 1
            torch.set_num_threads(num_threads)

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        views, start = {}, 0
        for name, shape in self._shapes.items():
            views[name] = flat[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        return views

    def named_weights(self) -> dict[str, Tensor]:
        """Return the parameters by the names of the book, as views."""
        return self._views(self.flat.detach())

    def weights(self) -> Weights:
        """Return copies of the parameters by the names of the book, on the CPU."""
        return {name: view.cpu().clone() for name, view in self.named_weights().items()}

    def load_weights(self, weights: Weights) -> None:
        """Copy weights in, by the names of the book."""
        for name, view in self.named_weights().items():
            view.copy_(weights[name])

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state, shape ``(batch_size, h)``."""
        return self.flat.detach().new_zeros(batch_size, self.num_hiddens)

    @torch.no_grad()
    def forward(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Return logits of shape ``(B, T, V)`` and the state after the last step.

        ``ids``: ``(B, T)`` of int64; ``state``: ``(B, h)``.
        """
        if self.is_compiled:
            return self._inference().run(ids, state)
        weights = self.named_weights()
        hiddens = self._run(
            weights, ids.T, state, torch.empty(ids.shape[1] + 1, *state.shape, device=state.device, dtype=state.dtype)
        )
        logits = torch.addmm(weights["b_q"], hiddens[1:].flatten(0, 1), weights["W_hq"])  # (T * B, V)
        return logits.view(ids.shape[1], ids.shape[0], -1).transpose(0, 1), hiddens[-1].clone()

    @torch.no_grad()
    def stepper(self, state: State) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane ``(B,)`` to logits ``(B, V)``; the state goes on inside it.

        The logits stand in a buffer that the next call overwrites.
        """
        if self.is_compiled:
            return self._inference().stepper(state)
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

    @torch.no_grad()
    def continue_greedily(self, ids: Tensor, state: State, num_preds: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), each the likeliest but token 0.

        Compiled loops use as many threads as PyTorch has.
        """
        if not self.is_compiled:
            return continue_by_steps(self, ids, state, num_preds)
        return self._inference().continue_greedily(ids, state, num_preds, torch.get_num_threads())

    def _inference(self) -> CompiledInference:
        """Return the loops with the weights packed, anew only when the weights have changed."""
        key = (self.flat.data_ptr(), self.flat._version)
        if self._packed is None or self._packed[0] != key:
            weights = self._arrays(self.flat.detach())
            self._packed = (key, CompiledInference(weights, is_relu=self.activation == "relu"))
        return self._packed[1]

    def _arrays(self, flat: Tensor) -> Parameters:
        return Parameters(*(view.numpy() for view in self._views(flat).values()))

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

    @torch.no_grad()
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: State, draws: Draws | None = None
    ) -> tuple[Tensor, State]:
        """Set ``flat.grad`` to the gradient of the mean loss and return the total loss and the new state.

        ``inputs``, ``targets``: ``(B, T)``; the loss is in nats, summed over B * T tokens.
        The state that comes in is a constant: truncated backpropagation through time.
        ``draws.keep`` may give factors of shape ``(T, B)`` that multiply the gradient which
        step t sends back to step t - 1: randomized truncation (8.7.8).
        """
        batch_size, num_steps = inputs.shape
        keep = None if draws is None else draws.keep(num_steps)
        if self.is_compiled:
            return self._compiled_gradients(num_steps, batch_size).compute(inputs, targets, state, keep)
        weights, grads = self.named_weights(), self._views(self._gradient())
        hiddens, deltas = self._workspace(num_steps, batch_size)
        self._run(weights, inputs.T, state, hiddens)
        outputs = hiddens[1:].flatten(0, 1)  # (T * B, h)
        logits = torch.addmm(weights["b_q"], outputs, weights["W_hq"])  # (T * B, V)
        log_probs = torch.log_softmax(logits, 1)
        wanted = targets.T.reshape(-1, 1)
        loss = -log_probs.gather(1, wanted).sum()

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
        return loss, hiddens[-1].clone()

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

    def _compiled_gradients(self, num_steps: int, batch_size: int) -> CompiledGradients:
        """Return the loops for this shape of minibatch, kept between calls."""
        flat, gradient = self.flat.detach(), self._gradient()
        key = (num_steps, batch_size, self._num_threads, flat.data_ptr(), gradient.data_ptr())
        if self._compiled is None or self._compiled[0] != key:
            if self._compiled is not None:
                self._compiled[1].stop()
            loops = CompiledGradients(
                self._arrays(flat),
                self._arrays(gradient),
                is_relu=self.activation == "relu",
                num_steps=num_steps,
                lanes=batch_size,
                num_threads=self._num_threads,
            )
            self._compiled = (key, loops)
        return self._compiled[1]

    def _gradient(self) -> Tensor:
        if self.flat.grad is None:
            self.flat.grad = torch.empty_like(self.flat)
        return self.flat.grad

    def _workspace(self, num_steps: int, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return buffers for the states (T + 1, B, h) and their gradients (T, B, h), kept between calls."""
        if self._buffers_of_shape != (num_steps, batch_size):
            self._hiddens = self.flat.detach().new_empty(num_steps + 1, batch_size, self.num_hiddens)
            self._deltas = torch.empty_like(self._hiddens[1:])
            self._buffers_of_shape = (num_steps, batch_size)
        return self._hiddens, self._deltas
