"""Layers of RNN, GRU or LSTM cells as compiled loops: on a CPU the faster twin of the framework's layers."""

import torch
from torch import Tensor

from seqlm.rnn.compiled_rnn import CompiledRNN
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.network import Noise
from seqlm.rnn.settings import NetworkSettings
from seqlm.rnn.specs import layers_parameters


class CompiledLayers(CompiledRNN):
    """A network of ``rnn``, ``gru`` or ``lstm`` cells, on a CPU and in single precision.

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
