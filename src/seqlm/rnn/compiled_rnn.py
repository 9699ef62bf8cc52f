"""What the networks with compiled loops have in common: one flat tensor of parameters, and a team of threads."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqlm.rnn.compiled.parameters import NetworkSpec
from seqlm.rnn.compiled.processor import has_fma
from seqlm.rnn.compiled.tensors import CompiledGradients, CompiledInference
from seqlm.rnn.network import Draws, Weights, continue_by_steps
from seqlm.rnn.surprisals import surprisals_of_outputs

COMPILES_FROM = 128
"""Hidden units from which the compiled loops repay the seconds that compiling them takes in each process."""


def repays_compiling(num_hiddens: int) -> bool:
    """Whether a network of this size is worth compiled loops, and this processor fit for them."""
    return num_hiddens >= COMPILES_FROM and has_fma()


class CompiledRNN(nn.Module):
    """A network whose parameters are views of one flat tensor, and their gradients of another.

    So clipping and the optimiser see one tensor. On a CPU, in single precision, its equations
    run as compiled loops (:mod:`seqlm.rnn.compiled`); a subclass writes them for any device.
    """

    def __init__(
        self, vocab_size: int, num_hiddens: int, shapes: dict[str, tuple[int, ...]], *, cell: str, num_layers: int
    ) -> None:
        """Make parameters of the given names and shapes, all of them zero.

        ``cell``: a name in :data:`seqlm.rnn.compiled.cells.CELLS`.
        """
        super().__init__()
        self.vocab_size, self.num_hiddens, self._shapes = vocab_size, num_hiddens, shapes
        self._cell, self._num_layers = cell, num_layers
        self.flat = nn.Parameter(torch.zeros(sum(math.prod(shape) for shape in shapes.values())))
        self.compiles_from = COMPILES_FROM
        self._num_threads = 1
        self._compiled: tuple[tuple[object, ...], CompiledGradients] | None = None
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

    def _places(self) -> dict[str, int]:
        """Return where each parameter begins in the flat tensor."""
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        return dict(zip(self._shapes, itertools.accumulate(sizes, initial=0), strict=False))

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        return {
            name: flat[start : start + math.prod(self._shapes[name])].reshape(self._shapes[name])
            for name, start in self._places().items()
        }

    def named_weights(self) -> dict[str, Tensor]:
        """Return the parameters by name, as views."""
        return self._views(self.flat.detach())

    def weights(self) -> Weights:
        """Return copies of the parameters by name, on the CPU."""
        return {name: view.cpu().clone() for name, view in self.named_weights().items()}

    def load_weights(self, weights: Weights) -> None:
        """Copy weights in, by name."""
        for name, view in self.named_weights().items():
            view.copy_(weights[name])

    def _gradient(self) -> Tensor:
        if self.flat.grad is None:
            self.flat.grad = torch.empty_like(self.flat)
        return self.flat.grad

    @torch.no_grad()
    def forward(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of shape ``(B, T, V)`` and the state after the last step, for ``ids`` (B, T) of int64."""
        if not self.is_compiled:
            return self._read(ids, state)
        logits, after = self._inference().run(ids, self._in_parts(state), self._threads_of_reading)
        return logits, after.reshape(state.shape)

    @torch.no_grad()
    def nats(self, ids: Tensor, targets: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return -log p of targets ``(B, T)``, on the CPU in double precision, and the state after ids ``(B, T)``."""
        if not self.is_compiled:
            outputs, after = self._outputs(ids, state)
            return surprisals_of_outputs(outputs.transpose(0, 1), targets, self._logits), after
        nats, after = self._inference().nats(ids, targets, self._in_parts(state), self._threads_of_reading)
        return nats, after.reshape(state.shape)

    @torch.no_grad()
    def advance_state(self, ids: Tensor, state: Tensor) -> Tensor:
        """Return the state after ids ``(B, T)``."""
        if not self.is_compiled:
            return self._outputs(ids, state)[1]
        return (
            self._inference().advance_state(ids, self._in_parts(state), self._threads_of_reading).reshape(state.shape)
        )

    @torch.no_grad()
    def step_fn(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane ``(B,)`` to logits ``(B, V)``; the state goes on inside it.

        The next call may overwrite the logits.
        """
        if self.is_compiled:
            return self._inference().step_fn(self._in_parts(state))
        return self._plain_step_fn(state)

    def _plain_step_fn(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        def step(ids: Tensor) -> Tensor:
            nonlocal state
            logits, state = self._read(ids[:, None], state)
            return logits[:, 0]

        return step

    @torch.no_grad()
    def continue_greedily(self, ids: Tensor, state: Tensor, num_preds: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), each the likeliest but token 0.

        Compiled loops use as many threads as PyTorch has.
        """
        if not self.is_compiled:
            return continue_by_steps(self, ids, state, num_preds)
        return self._inference().continue_greedily(ids, self._in_parts(state), num_preds, self._threads_of_reading)

    @torch.no_grad()
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, draws: Draws | None = None
    ) -> tuple[Tensor, Tensor]:
        """Set ``flat.grad`` to the gradient of the mean loss; return each target's -log p and the new state.

        ``inputs``, ``targets``, the nats: ``(B, T)``. The state that comes in is a constant:
        truncated backpropagation through time. ``draws`` gives what :meth:`_draw` asks for.
        """
        masks, keep = self._draw(draws, *inputs.shape)
        if not self.is_compiled:
            return self._find_gradients(inputs, targets, state, masks, keep)
        loops = self._gradient_loops(*inputs.shape, is_dropped=bool(masks))
        nats, after = loops.compute(inputs, targets, self._in_parts(state), masks, keep)
        return nats, after.reshape(state.shape)

    @abstractmethod
    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state of ``batch_size`` lanes."""

    @abstractmethod
    def _spec(self) -> NetworkSpec:
        """Return what the compiled loops have to know of the network."""

    def _read(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Do what :meth:`forward` says by the equations, on any device."""
        outputs, after = self._outputs(ids, state)
        return self._logits(outputs).transpose(0, 1), after

    @abstractmethod
    def _outputs(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer gives for ``ids`` (B, T), ``(T, B, h)``, and the new state, on any device."""

    @abstractmethod
    def _logits(self, outputs: Tensor) -> Tensor:
        """Return logits ``(..., V)`` of what the last layer gives, ``(..., h)``, on any device."""

    @abstractmethod
    def _draw(self, draws: Draws | None, lanes: int, num_steps: int) -> tuple[list[Tensor], Tensor | None]:
        """Return what is drawn for a minibatch.

        Dropout's factors, of the embeddings where there are such and of every layer's outputs,
        ``(B, size)`` each, or none; and the factors of what steps send back, ``(T, B)``, or None.
        """

    @abstractmethod
    def _find_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, masks: list[Tensor], keep: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Do what :meth:`compute_gradients` says by the equations, on any device."""

    @property
    def _threads_of_reading(self) -> int:
        """How many threads read: those of the team, where PyTorch itself has one."""
        return max(self._num_threads, torch.get_num_threads())

    def _in_parts(self, state: Tensor) -> Tensor:
        """Return a state as the loops have it: (layers, parts, B, h)."""
        return state.reshape(self._num_layers, -1, *state.shape[-2:])

    def _inference(self) -> CompiledInference:
        """Return the loops with the weights packed, anew only when the weights have changed."""
        key = (self.flat.data_ptr(), self.flat._version)
        if self._packed is None or self._packed[0] != key:
            self._packed = (key, CompiledInference(self._spec(), self._cell, self.flat.detach()))
        return self._packed[1]

    def _gradient_loops(self, lanes: int, num_steps: int, *, is_dropped: bool) -> CompiledGradients:
        """Return the loops for this shape of minibatch, kept between calls."""
        flat, gradient = self.flat.detach(), self._gradient()
        key = (num_steps, lanes, is_dropped, self._num_threads, flat.data_ptr(), gradient.data_ptr())
        if self._compiled is None or self._compiled[0] != key:
            if self._compiled is not None:
                self._compiled[1].stop()
            loops = CompiledGradients(
                self._spec(), self._cell, flat, gradient, num_steps=num_steps, lanes=lanes, is_dropped=is_dropped,
                num_threads=self._num_threads,
            )  # fmt: skip
            self._compiled = (key, loops)
        return self._compiled[1]
