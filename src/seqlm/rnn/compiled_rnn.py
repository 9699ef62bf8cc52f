"""What the networks with compiled loops have in common: one flat tensor of parameters, and a team of threads."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.inference import CompiledInference
from seqlm.rnn.compiled.parameters import NetworkSpec
from seqlm.rnn.compiled.training import CompiledGradients
from seqlm.rnn.logits import is_large
from seqlm.rnn.network import Network, Noise, Weights

_MIN_FLOPS_OF_A_TEAM = 2e6
"""A minibatch with fewer floating-point operations takes one thread less time than a team needs to meet."""


class CompiledRNN(Network):
    """A recurrent network whose parameters are views of one flat tensor, and their gradients of another.

    So clipping and the optimiser see one tensor. On a CPU, in single precision, its equations run as compiled loops
    (:mod:`seqlm.rnn.compiled`); a subclass may also write them for any device.
    """

    may_compile = True
    """Whether compiled loops may be used; a test or the setting ``engine: framework`` forbids them."""

    def __init__(self, vocab_size: int, num_hiddens: int, shapes: dict[str, tuple[int, ...]]) -> None:
        """Make parameters of the given names and shapes, all of them zero."""
        super().__init__()
        self.vocab_size, self.num_hiddens, self._shapes = vocab_size, num_hiddens, shapes
        sizes = itertools.accumulate((math.prod(shape) for shape in shapes.values()), initial=0)
        *starts, total = sizes
        self._starts = dict(zip(shapes, starts, strict=True))
        self.flat = nn.Parameter(torch.zeros(total))
        self._num_threads = 1
        self._gradient_loops: tuple[tuple[object, ...], CompiledGradients] | None = None
        self._inference_loops: tuple[tuple[object, ...], CompiledInference] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy starts with: not the threads, which belong to this network."""
        return self.__dict__ | {"_gradient_loops": None, "_inference_loops": None, "_num_threads": 1}

    @property
    def is_compiled(self) -> bool:
        """Whether compiled loops are used: on a CPU with FMA and in single precision, unless they are forbidden."""
        is_fitting = self.flat.device.type == "cpu" and self.flat.dtype == torch.float32
        return is_fitting and self.may_compile and has_fma()

    @property
    def engine(self) -> str:
        """What computes the network."""
        return "compiled" if self.is_compiled else super().engine

    @contextmanager
    def thread_team(self) -> Iterator[None]:
        """Use PyTorch's number of threads for gradients inside this context, while PyTorch itself works with one.

        The threads of both spin while they wait, and would take the processors from each other.
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
            if self._gradient_loops is not None:
                self._gradient_loops[1].stop()
            self._gradient_loops, self._num_threads = None, 1
            torch.set_num_threads(num_threads)

    def named_weights(self) -> Weights:
        """Return the parameters by name, as views."""
        return self._views(self.flat.detach())

    def named_gradients(self) -> Weights:
        """Return the gradients by the parameters' names, as views."""
        return self._views(self._gradient())

    def _views(self, flat: Tensor) -> Weights:
        return {
            name: flat[self._starts[name] :][: math.prod(shape)].view(shape) for name, shape in self._shapes.items()
        }

    def _gradient(self) -> Tensor:
        if self.flat.grad is None:
            self.flat.grad = torch.empty_like(self.flat)
        return self.flat.grad

    @torch.no_grad()
    def forward(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last step."""
        if not self.is_compiled:
            return self._plain_forward(ids, state)
        return self._inference().run(ids, state, self._inference_threads)

    @torch.no_grad()
    def token_nll(self, ids: Tensor, targets: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Do what :meth:`Network.token_nll` does."""
        if not self.is_compiled or not is_large(self.vocab_size):
            return super().token_nll(ids, targets, state)
        return self._inference().token_nll(ids, targets, state, self._inference_threads)

    @torch.no_grad()
    def advance_state(self, ids: Tensor, state: Tensor) -> Tensor:
        """Return the state after ids ``(B, T)``."""
        if not self.is_compiled:
            return self._plain_forward(ids, state)[1]
        return self._inference().advance_state(ids, state, self._inference_threads)

    @torch.no_grad()
    def step_fn(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        """Do what :meth:`Network.step_fn` does."""
        return self._inference().step_fn(state) if self.is_compiled else super().step_fn(state)

    @torch.no_grad()
    def continue_greedily(self, ids: Tensor, state: Tensor, num_preds: int) -> Tensor:
        """Do what :meth:`Network.continue_greedily` does; compiled loops use as many threads as PyTorch has."""
        if not self.is_compiled:
            return super().continue_greedily(ids, state, num_preds)
        return self._inference().continue_greedily(ids, state, num_preds, self._inference_threads)

    @torch.no_grad()
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Do what :meth:`Network.compute_gradients` does; the gradient is ``flat.grad``."""
        masks = [] if noise is None else self._dropout_masks(noise, *inputs.shape)
        keep = None if noise is None else self._bptt_keep(noise, inputs.shape[1])
        if not self.is_compiled:
            return self._plain_gradients(inputs, targets, state, keep)
        loops = self._gradients(*inputs.shape, has_dropout=bool(masks))
        return loops.compute(inputs, targets, state, masks, keep)

    @abstractmethod
    def _spec(self) -> NetworkSpec:
        """Return what the compiled loops need to know of the network."""

    def _dropout_masks(self, noise: Noise, batch_size: int, num_steps: int) -> list[Tensor]:  # noqa: ARG002
        """Return dropout masks ``(B, size)``, of the embeddings if there are any and of every layer, or none."""
        return []

    def _bptt_keep(self, noise: Noise, num_steps: int) -> Tensor | None:  # noqa: ARG002
        """Return the factors of what steps send back, ``(T, B)``; None: all are 1."""
        return None

    def _plain_forward(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Do what :meth:`forward` does by the equations, on any device."""
        raise NotImplementedError("this network runs on a CPU and in single precision only")

    def _plain_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, keep: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Do what :meth:`compute_gradients` does by the equations, on any device."""
        raise NotImplementedError("this network runs on a CPU and in single precision only")

    @property
    def _inference_threads(self) -> int:
        """How many threads read a text: those of the team, while PyTorch itself has one."""
        return max(self._num_threads, torch.get_num_threads())

    def _inference(self) -> CompiledInference:
        """Return the loops with the weights packed, anew only when the weights have changed."""
        key = (self.flat.data_ptr(), self.flat._version)
        if self._inference_loops is None or self._inference_loops[0] != key:
            self._inference_loops = (key, CompiledInference(self._spec(), self.flat.detach()))
        return self._inference_loops[1]

    def _gradients(self, batch_size: int, num_steps: int, *, has_dropout: bool) -> CompiledGradients:
        """Return the loops for this shape of minibatch, kept between calls."""
        flat, gradient = self.flat.detach(), self._gradient()
        num_flops = 6 * flat.numel() * batch_size * num_steps
        num_threads = self._num_threads if num_flops > _MIN_FLOPS_OF_A_TEAM else 1
        key = (num_steps, batch_size, has_dropout, num_threads, flat.data_ptr(), gradient.data_ptr())
        if self._gradient_loops is None or self._gradient_loops[0] != key:
            if self._gradient_loops is not None:
                self._gradient_loops[1].stop()
            loops = CompiledGradients(
                self._spec(), flat, gradient, batch_size, num_steps, has_dropout=has_dropout, num_threads=num_threads
            )
            self._gradient_loops = (key, loops)
        return self._gradient_loops[1]
