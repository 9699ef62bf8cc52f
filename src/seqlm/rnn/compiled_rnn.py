"""Networks with compiled loops: one flat tensor of parameters, and a team of threads."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from seqlm.rnn.array_network import ArrayNetwork
from seqlm.rnn.compiled.network import CompiledNetwork
from seqlm.rnn.network import Network, Noise, Weights
from seqlm.rnn.parameters import Parameters, places


class CompiledRNN(Network):
    """A recurrent network whose equations run as compiled loops on a CPU, in single precision.

    The loops are those of :mod:`seqlm.rnn.compiled`. The parameters are views of one flat tensor, and their gradients
    of another, so clipping and the optimiser see one tensor. The state is ``(L, P, B, h)`` for L layers, P state
    tensors (2 of an lstm, 1 of the others), B batch rows and h hidden units.
    """

    engine = "compiled"

    def __init__(self, parameters: Parameters, weights: Weights, dropout: float = 0.0) -> None:
        """Start with a copy of ``weights``, as another network of the same parameters returns them."""
        super().__init__()
        self._shapes, self._spec = parameters
        self._starts, self._dropout = places(self._shapes), dropout
        self.vocab_size = self._spec.vocab_size
        self.flat = nn.Parameter(torch.empty(sum(map(math.prod, self._shapes.values()))))
        self.load_weights(weights)
        self._num_threads = 1
        self._loops: CompiledNetwork | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy starts with: not the threads, which belong to this network."""
        return self.__dict__ | {"_loops": None, "_num_threads": 1}

    @contextmanager
    def thread_team(self) -> Iterator[None]:
        """Use PyTorch's number of threads for gradients inside this context, while PyTorch itself works with one.

        The threads of both spin while they wait, and would take the processors from each other.
        """
        num_threads = torch.get_num_threads()
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
        flat = self.flat.detach()
        return {
            name: flat[self._starts[name] :][: math.prod(shape)].view(shape) for name, shape in self._shapes.items()
        }

    @property
    def arrays(self) -> ArrayNetwork:
        """The same network for arrays; the loops use this network's own memory."""
        return self._compiled()

    def _compiled(self) -> CompiledNetwork:
        """Return the compiled loops over the parameters as they are now in memory."""
        flat = self.flat.detach().numpy()
        if self._loops is None or self._loops.flat.ctypes.data != flat.ctypes.data:
            self._loops = CompiledNetwork(self._spec, flat)
        # The threads of a team, while PyTorch itself has one.
        self._loops.num_threads = max(self._num_threads, torch.get_num_threads())
        return self._loops

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state, shape ``(L, P, batch_size, h)``."""
        return torch.from_numpy(self._compiled().initial_state(batch_size))

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
        if self.flat.grad is None:
            self.flat.grad = torch.empty_like(self.flat)
        keep = None if noise is None else noise.bptt_keep(inputs.shape[1])
        loops = self._compiled()
        loops.gradient = self.flat.grad.numpy()
        nll, after = loops.compute_gradients(
            inputs.numpy(), targets.numpy(), state.numpy(), self._dropout_masks(noise, *inputs.shape),
            None if keep is None else keep.numpy(), num_threads=self._num_threads,
        )  # fmt: skip
        return torch.from_numpy(nll), torch.from_numpy(after)

    def _dropout_masks(self, noise: Noise | None, batch_size: int, num_steps: int) -> list[Any]:
        """Return dropout masks ``(B, size)``, of the embeddings if there are any and of every layer, or none."""
        if noise is None or self._dropout == 0:
            return []
        spec, one = self._spec, self.flat.detach()[0]
        sizes = [spec.embedding_size] * bool(spec.embedding_size) + [spec.num_hiddens] * len(spec.layers)
        masks = (noise.dropout_mask(one.expand(batch_size, num_steps, size), self._dropout) for size in sizes)
        return [mask[:, 0].numpy() for mask in masks]
