"""Networks with compiled loops: one flat tensor of parameters, and a team of threads."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqlm.rnn.array_network import ArrayNetwork
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.network import CompiledNetwork
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.network import Network, Noise, Weights
from seqlm.rnn.settings import NetworkSettings
from seqlm.rnn.specs import Parameters, layers_parameters, places


class CompiledRNN(Network):
    """A recurrent network whose parameters are views of one flat tensor, and their gradients of another.

    So clipping and the optimiser see one tensor. On a CPU, in single precision, its equations run as compiled loops
    (:mod:`seqlm.rnn.compiled`); a subclass for any device also has them for when :attr:`is_compiled` is false.
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
        logits, after = self._compiled().logits(ids.numpy(), state.numpy())
        return torch.from_numpy(logits), torch.from_numpy(after)

    @torch.no_grad()
    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: Tensor, noise: Noise | None = None
    ) -> tuple[Tensor, Tensor]:
        """Do what :meth:`Network.compute_gradients` does; the gradient is ``flat.grad``."""
        masks = [] if noise is None else self._dropout_masks(noise, *inputs.shape)
        keep = None if noise is None else self._bptt_keep(noise, inputs.shape[1])
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


class CompiledLayers(CompiledRNN):
    """Layers of ``rnn``, ``gru`` or ``lstm`` cells, faster than the framework's on a CPU, in single precision.

    The parameters, their initial values and the places of dropout are those of
    :class:`seqlm.rnn.framework.FrameworkRNN`: either can load the other's weights. The state is ``(L, P, B, h)`` for
    L layers, P state tensors (2 of an lstm, 1 of the others), B batch rows and h hidden units.
    """

    def __init__(self, settings: NetworkSettings, vocab_size: int, seed: int) -> None:
        """Draw the weights as the framework's network does, by ``seed``."""
        super().__init__(layers_parameters(settings, vocab_size))
        self.load_weights(FrameworkRNN(settings, vocab_size, seed).weights())
        self._num_layers, self._num_parts = settings.num_layers, 1 + self._spec.cell.has_memory
        self._embedding_size, self._dropout = settings.size_of_embedding or 0, settings.dropout

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state, shape ``(L, P, batch_size, h)``."""
        return torch.zeros(self._num_layers, self._num_parts, batch_size, self.num_hiddens)

    def _dropout_masks(self, noise: Noise, batch_size: int, num_steps: int) -> list[Tensor]:
        if self._dropout == 0:
            return []
        sizes, one = [self._embedding_size] * bool(self._embedding_size), self.flat.detach()[0]
        return [
            noise.dropout_mask(one.expand(batch_size, num_steps, size), self._dropout)[:, 0]
            for size in sizes + [self.num_hiddens] * self._num_layers
        ]
