"""What the networks with compiled loops have in common: one flat tensor of parameters, and a team of threads."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqlm.rnn.array_network import ArrayNetwork
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.network import CompiledNetwork
from seqlm.rnn.network import Network, Noise, Weights
from seqlm.rnn.specs import Parameters, places


class CompiledRNN(Network):
    """A recurrent network whose parameters are views of one flat tensor, and their gradients of another.

    So clipping and the optimiser see one tensor. On a CPU, in single precision, its equations run as compiled loops
    (:mod:`seqlm.rnn.compiled`); a subclass may also write them for any device.
    """

    may_compile = True
    """Whether compiled loops may be used; a test or the setting ``engine: framework`` forbids them."""

    def __init__(self, parameters: Parameters) -> None:
        """Make parameters of these names and shapes, all of them zero."""
        super().__init__()
        self._shapes, self._spec = parameters
        self.vocab_size, self.num_hiddens = self._spec.vocab_size, self._spec.num_hiddens
        self._starts = places(self._shapes)
        self.flat = nn.Parameter(torch.zeros(sum(map(math.prod, self._shapes.values()))))
        self._num_threads = 1
        self._loops: CompiledNetwork | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy starts with: not the threads, which belong to this network."""
        return self.__dict__ | {"_loops": None, "_num_threads": 1}

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
            if self._loops is not None:
                self._loops.stop_threads()
            self._num_threads = 1
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

    @property
    def arrays(self) -> ArrayNetwork:
        """The same network for arrays; compiled loops use this network's own memory."""
        return self._compiled() if self.is_compiled else super().arrays

    def _compiled(self) -> CompiledNetwork:
        """Return the compiled loops over the parameters as they are now in memory."""
        flat = self.flat.detach().numpy()
        if self._loops is None or self._loops.flat.ctypes.data != flat.ctypes.data:
            self._loops = CompiledNetwork(self._spec, flat)
        # The threads of a team, while PyTorch itself has one.
        self._loops.num_threads = max(self._num_threads, torch.get_num_threads())
        return self._loops

    @torch.no_grad()
    def forward(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last step."""
        if not self.is_compiled:
            return self._plain_forward(ids, state)
        logits, after = self._compiled().logits(ids.numpy(), state.numpy())
        return torch.from_numpy(logits), torch.from_numpy(after)

    @torch.no_grad()
    def token_nll(self, ids: Tensor, targets: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Do what :meth:`Network.token_nll` does."""
        if not self.is_compiled:
            return super().token_nll(ids, targets, state)
        nll, after = self._compiled().token_nll(ids.numpy(), targets.numpy(), state.numpy())
        return torch.from_numpy(nll), torch.from_numpy(after)

    @torch.no_grad()
    def advance_state(self, ids: Tensor, state: Tensor) -> Tensor:
        """Return the state after ids ``(B, T)``."""
        if not self.is_compiled:
            return self._plain_forward(ids, state)[1]
        return torch.from_numpy(self._compiled().advance_state(ids.numpy(), state.numpy()))

    @torch.no_grad()
    def step_fn(self, state: Tensor) -> Callable[[Tensor], Tensor]:
        """Do what :meth:`Network.step_fn` does."""
        if not self.is_compiled:
            return super().step_fn(state)
        step = self._compiled().step_fn(state.numpy())
        return lambda ids: torch.from_numpy(step(ids.numpy()))

    @torch.no_grad()
    def continue_greedily(self, ids: Tensor, state: Tensor, num_preds: int) -> Tensor:
        """Do what :meth:`Network.continue_greedily` does; compiled loops use as many threads as PyTorch has."""
        if not self.is_compiled:
            return super().continue_greedily(ids, state, num_preds)
        return torch.from_numpy(self._compiled().continue_greedily(ids.numpy(), state.numpy(), num_preds))

    @torch.no_grad()
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Do what :meth:`Network.compute_gradients` does; the gradient is ``flat.grad``."""
        masks = [] if noise is None else self._dropout_masks(noise, *inputs.shape)
        keep = None if noise is None else self._bptt_keep(noise, inputs.shape[1])
        if not self.is_compiled:
            return self._plain_gradients(inputs, targets, state, keep)
        loops = self._compiled()
        loops.gradient = self._gradient().numpy()
        nll, after = loops.compute_gradients(
            inputs.numpy(), targets.numpy(), state.numpy(), [mask.numpy() for mask in masks],
            None if keep is None else keep.numpy(), num_threads=self._num_threads,
        )  # fmt: skip
        return torch.from_numpy(nll), torch.from_numpy(after)

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
