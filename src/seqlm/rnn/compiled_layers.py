"""Layers of RNN, GRU or LSTM cells as compiled loops: on a CPU the faster twin of the framework's layers."""

import numpy as np
import torch
from torch import Tensor

from seqlm.rnn.compiled.cells import LAYOUTS
from seqlm.rnn.compiled.parameters import ABSENT, NetworkSpec
from seqlm.rnn.compiled_rnn import CompiledRNN
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.network import Noise
from seqlm.rnn.settings import NetworkSettings

_EMBEDDING, _OUTPUT, _OUTPUT_BIAS = "embedding.weight", "output.weight", "output.bias"
_OF_LAYER = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class CompiledLayers(CompiledRNN):
    """A network of ``rnn``, ``gru`` or ``lstm`` cells, on a CPU and in single precision.

    The parameters, their initial values and the places of dropout are those of
    :class:`seqlm.rnn.framework.FrameworkRNN`: either can load the other's weights. The state is ``(L, P, B, h)`` for
    L layers, P state tensors (2 of an lstm, 1 of the others), B batch rows and h hidden units.
    """

    def __init__(self, settings: NetworkSettings, vocab_size: int, seed: int) -> None:
        """Draw the weights as the framework's network does, by ``seed``."""
        weights = FrameworkRNN(settings, vocab_size, seed).weights()
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
        super().__init__(vocab_size, settings.num_hiddens, shapes)
        self.load_weights(weights)
        cell = settings.activation if settings.model == "rnn" else settings.model
        self._cell, self._num_layers = LAYOUTS[cell], settings.num_layers
        self._embedding_size, self._dropout = settings.size_of_embedding or 0, settings.dropout
        self._output = _EMBEDDING if settings.tie_weights else _OUTPUT

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state, shape ``(L, P, batch_size, h)``."""
        return torch.zeros(self._num_layers, 1 + self._cell.has_memory, batch_size, self.num_hiddens)

    def _spec(self) -> NetworkSpec:
        starts = self._starts
        layers = [[starts[f"layers.{layer}.{name}_l0"] for name in _OF_LAYER] for layer in range(self._num_layers)]
        return NetworkSpec(
            vocab_size=self.vocab_size,
            num_hiddens=self.num_hiddens,
            embedding_size=self._embedding_size,
            cell=self._cell,
            layers=np.array(layers),
            embedding=starts.get(_EMBEDDING, ABSENT),
            outputs=starts[self._output],
            output_bias=starts[_OUTPUT_BIAS],
            has_input_rows=False,
        )

    def _dropout_masks(self, noise: Noise, batch_size: int, num_steps: int) -> list[Tensor]:
        if self._dropout == 0:
            return []
        sizes, one = [self._embedding_size] * bool(self._embedding_size), self.flat.detach()[0]
        return [
            noise.dropout_mask(one.expand(batch_size, num_steps, size), self._dropout)[:, 0]
            for size in sizes + [self.num_hiddens] * self._num_layers
        ]
