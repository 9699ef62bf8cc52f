"""Layers of LSTM or GRU cells between an embedding and an output layer, with the backward pass written out.

What a step does stands in :mod:`seqlm.rnn.cells`; here are the layers, backpropagation through time,
and dropout with one mask for all steps of a minibatch (Gal and Ghahramani 2016). On a CPU, in single
precision, the same equations run as compiled loops (:mod:`seqlm.rnn.compiled`); what stands here runs
on any device. The parameters and the places of dropout are those of
:class:`seqlm.rnn.framework.FrameworkRNN`: weights go from one to the other.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqlm.rnn.cells import CELLS, Cell
from seqlm.rnn.compiled.cells import CELLS as COMPILED_CELLS
from seqlm.rnn.compiled.parameters import NOWHERE, NetworkSpec
from seqlm.rnn.compiled_rnn import CompiledRNN
from seqlm.rnn.network import Draws
from seqlm.rnn.settings import NetworkSettings

State = Tensor
_EMBEDDING, _OUTPUT, _OUTPUT_BIAS = "embedding.weight", "output.weight", "output.bias"


@dataclass(frozen=True)
class LayerWeights:
    """The parameters of a layer, or their gradients."""

    inputs: Tensor
    """(G h, inputs)."""
    states: Tensor
    """(G h, h)."""
    input_bias: Tensor
    state_bias: Tensor


@dataclass(frozen=True)
class Passage:
    """What is left of a layer's way through the steps."""

    inputs: Tensor
    """(T, B, inputs)."""
    states: Tensor
    """(T + 1, P, B, h): before and after each step."""
    kept: list[Tensor]
    """What each step keeps for the way back."""


class GatedRNN(CompiledRNN):
    """A network of ``lstm`` or ``gru`` cells, without automatic differentiation.

    Shapes: V vocabulary, E embedding, h hidden units, G gates, L layers, P parts of the state (2 of
    an lstm, else 1), B lanes, T steps. The state is ``(L, P, B, h)``. The weights are zeros until
    :meth:`load_weights`.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        model: Literal["gru", "lstm"],
        num_hiddens: int,
        num_layers: int,
        embedding_size: int | None,
        tie_weights: bool,
        dropout: float,
    ) -> None:
        """Make a network; ``embedding_size`` None means one-hot input."""
        rows = CELLS[model].num_gates * num_hiddens
        shapes: dict[str, tuple[int, ...]] = {}
        if embedding_size is not None:
            shapes[_EMBEDDING] = (vocab_size, embedding_size)
        for layer in range(num_layers):
            num_inputs = num_hiddens if layer else embedding_size or vocab_size
            kinds = [(rows, num_inputs), (rows, num_hiddens), (rows,), (rows,)]
            shapes |= zip(_names(layer), kinds, strict=True)
        if not tie_weights:
            shapes[_OUTPUT] = (vocab_size, num_hiddens)
        shapes[_OUTPUT_BIAS] = (vocab_size,)
        super().__init__(vocab_size, num_hiddens, shapes, cell=model, num_layers=num_layers)
        self.dropout, self._steps, self._embedding_size = dropout, CELLS[model], embedding_size
        self._output = _EMBEDDING if tie_weights else _OUTPUT

    @classmethod
    def of(cls, settings: NetworkSettings, vocab_size: int) -> Self:
        """Return a network of the given settings."""
        if settings.model not in ("gru", "lstm"):
            raise ValueError(f"{settings.model} is no kind of gated cell")
        return cls(
            vocab_size,
            model=settings.model,
            num_hiddens=settings.num_hiddens,
            num_layers=settings.num_layers,
            embedding_size=settings.size_of_embedding,
            tie_weights=settings.tie_weights,
            dropout=settings.dropout,
        )

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state, shape ``(L, P, batch_size, h)``."""
        return self.flat.detach().new_zeros(
            self._num_layers, self._steps.num_state_tensors, batch_size, self.num_hiddens
        )

    def _spec(self) -> NetworkSpec:
        cell, places = COMPILED_CELLS[self._cell], self._places()
        return NetworkSpec(
            vocab_size=self.vocab_size,
            num_hiddens=self.num_hiddens,
            embedding_size=self._embedding_size or 0,
            cell=cell.number,
            input_blocks=np.array(cell.input_blocks),
            state_blocks=np.array(cell.state_blocks),
            first_state_block=cell.first_state_block,
            layers=np.array([[places[name] for name in _names(layer)] for layer in range(self._num_layers)]),
            embedding=places.get(_EMBEDDING, NOWHERE),
            outputs=places[self._output],
            output_bias=places[_OUTPUT_BIAS],
            has_input_rows=False,
        )

    def _draw(self, draws: Draws | None, lanes: int, num_steps: int) -> tuple[list[Tensor], Tensor | None]:
        if draws is None or self.dropout == 0:
            return [], None
        sizes = [self._embedding_size] if self._embedding_size else []
        one = self.flat.detach()[0]
        return [
            draws.mask(one.expand(lanes, num_steps, size), self.dropout)[:, 0]
            for size in [*sizes, *[self.num_hiddens] * self._num_layers]
        ], None

    def _outputs(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        passages, outputs = self._go_through_layers(self.named_weights(), ids.T, state, [])
        return outputs, torch.stack([passage.states[-1] for passage in passages])

    def _logits(self, outputs: Tensor) -> Tensor:
        weights = self.named_weights()
        return outputs @ weights[self._output].T + weights[_OUTPUT_BIAS]

    def _go_through_layers(
        self, weights: dict[str, Tensor], ids: Tensor, state: State, masks: list[Tensor]
    ) -> tuple[list[Passage], Tensor]:
        """Return every layer's passage, and what the last gives to the output layer, ``(T, B, h)``; ``ids`` (T, B)."""
        if self._embedding_size is None:
            hidden = F.one_hot(ids, self.vocab_size).to(self.flat.dtype)  # (T, B, V)
        else:
            hidden = weights[_EMBEDDING][ids]  # (T, B, E)
        if masks and self._embedding_size is not None:
            hidden = hidden * masks[0]
        passages = []
        for layer in range(self._num_layers):
            passages.append(go_forward(self._steps, _layer(weights, layer), hidden, state[layer]))
            hidden = passages[-1].states[1:, 0]  # (T, B, h)
            if masks:
                hidden = hidden * masks[layer - self._num_layers]
        return passages, hidden

    def _find_gradients(
        self,
        inputs: Tensor,
        targets: Tensor,
        state: State,
        masks: list[Tensor],
        keep: Tensor | None,  # noqa: ARG002
    ) -> tuple[Tensor, State]:
        weights, grads = self.named_weights(), self._views(self._gradient().zero_())
        passages, outputs = self._go_through_layers(weights, inputs.T, state, masks)
        logits = outputs @ weights[self._output].T + weights[_OUTPUT_BIAS]  # (T, B, V)
        log_probs, wanted = torch.log_softmax(logits, 2), targets.T[:, :, None]
        nats = -log_probs.gather(2, wanted)[:, :, 0]

        # The gradient of the mean loss by the logits is (softmax - one-hot) / (T * B).
        d_logits = log_probs.exp()
        d_logits.scatter_add_(2, wanted, torch.full_like(wanted, -1, dtype=d_logits.dtype)).mul_(1 / wanted.numel())
        grads[self._output] += sum_of_outer_products(d_logits, outputs)
        grads[_OUTPUT_BIAS] += d_logits.sum((0, 1))
        d_hidden = d_logits @ weights[self._output]  # (T, B, h)
        for layer in reversed(range(self._num_layers)):
            if masks:
                d_hidden = d_hidden * masks[layer - self._num_layers]
            d_hidden = go_back(
                self._steps, _layer(weights, layer), passages[layer], d_hidden, _layer(grads, layer)
            )  # (T, B, inputs)
        if self._embedding_size is not None:
            d_embedded = d_hidden * masks[0] if masks else d_hidden
            grads[_EMBEDDING].index_add_(0, inputs.T.reshape(-1), d_embedded.flatten(0, 1))
        return nats.T, torch.stack([passage.states[-1] for passage in passages])


def go_forward(cell: Cell, weights: LayerWeights, inputs: Tensor, state: Tensor) -> Passage:
    """Take a layer through all steps; ``inputs`` ``(T, B, inputs)``, ``state`` ``(P, B, h)``."""
    from_inputs = inputs @ weights.inputs.T + weights.input_bias  # (T, B, G h)
    states, kept = [state], []
    for from_input in from_inputs:
        before = states[-1]
        after, of_step = cell.forward(from_input, before[0] @ weights.states.T + weights.state_bias, before)
        states.append(after)
        kept.append(of_step)
    return Passage(inputs, torch.stack(states), kept)


def go_back(cell: Cell, weights: LayerWeights, passage: Passage, d_outputs: Tensor, grads: LayerWeights) -> Tensor:
    """Go back over all steps: set the layer's gradients, and return those by its inputs, ``(T, B, inputs)``.

    ``d_outputs``, ``(T, B, h)``: gradients by what the layer gives at each step, later steps aside.
    """
    d_state = torch.zeros_like(passage.states[0])
    d_sums = []
    for t in reversed(range(len(d_outputs))):
        d_state[0] += d_outputs[t]
        d_input, d_recurrent, d_state = cell.backward(
            d_state, passage.kept[t], passage.states[t], passage.states[t + 1]
        )
        d_state[0] += d_recurrent @ weights.states
        d_sums.append((d_input, d_recurrent))
    d_inputs, d_recurrents = (torch.stack(steps[::-1]) for steps in zip(*d_sums, strict=True))  # (T, B, G h)
    grads.inputs.copy_(sum_of_outer_products(d_inputs, passage.inputs))
    grads.states.copy_(sum_of_outer_products(d_recurrents, passage.states[:-1, 0]))
    grads.input_bias.copy_(d_inputs.sum((0, 1)))
    grads.state_bias.copy_(d_recurrents.sum((0, 1)))
    return d_inputs @ weights.inputs


def sum_of_outer_products(left: Tensor, right: Tensor) -> Tensor:
    """Return the sum over steps and lanes of columns ``left`` (T, B, m) times rows ``right`` (T, B, n)."""
    return left.flatten(0, 1).T @ right.flatten(0, 1)


def _names(layer: int) -> list[str]:
    """Return the names of a layer's parameters, in the order of :class:`LayerWeights`."""
    return [f"layers.{layer}.{kind}_l0" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


def _layer(parameters: dict[str, Tensor], layer: int) -> LayerWeights:
    return LayerWeights(*(parameters[name] for name in _names(layer)))
