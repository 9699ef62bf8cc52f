"""Recurrent networks on the framework's own layers (section 8.6): rnn, gru, lstm."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.rnn.network import Draws, Weights, continue_by_steps
from seqlm.rnn.surprisals import surprisals_of_outputs

LayerState = Tensor | tuple[Tensor, Tensor]
State = list[LayerState]

_LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class FrameworkRNN(nn.Module):
    """Layers of ``rnn``, ``gru`` or ``lstm`` between an embedding and an output layer.

    Shapes: V vocabulary, E embedding, h hidden units, B lanes, T steps. Dropout has one
    mask for all steps of a minibatch (Gal and Ghahramani 2016) and stands before the
    first layer of a learned embedding, between layers, and before the output.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        model: Literal["rnn", "gru", "lstm"],
        num_hiddens: int,
        num_layers: int,
        embedding_size: int | None,
        tie_weights: bool,
        dropout: float,
        activation: Literal["tanh", "relu"],
        seed: int,
    ) -> None:
        """Draw the weights from PyTorch's distributions, by ``seed``; ``embedding_size`` None means one-hot input.

        Those of gru and lstm are drawn in double precision: in single precision, PyTorch's numbers
        depend on the processor. An rnn gets exactly PyTorch's own, as in the book.
        """
        super().__init__()
        self.vocab_size, self.num_hiddens, self.dropout = vocab_size, num_hiddens, dropout
        drawn = torch.float32 if model == "rnn" else torch.float64
        options = {"nonlinearity": activation} if model == "rnn" else {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = None if embedding_size is None else nn.Embedding(vocab_size, embedding_size, dtype=drawn)
            sizes = [vocab_size if embedding_size is None else embedding_size] + [num_hiddens] * (num_layers - 1)
            self.layers = nn.ModuleList(
                _LAYERS[model](size, num_hiddens, batch_first=True, dtype=drawn, **options) for size in sizes
            )
            self.output = nn.Linear(num_hiddens, vocab_size, dtype=drawn)
            if tie_weights and self.embedding is not None:
                # An output matrix drawn as an embedding, from N(0, 1), would start far too large.
                nn.init.normal_(self.embedding.weight, 0, num_hiddens**-0.5)
                self.output.weight = self.embedding.weight
        self.float()
        self._has_cell = model == "lstm"

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state: one entry a layer, each ``(1, B, h)``, a pair of them for an lstm."""
        zeros = self.output.weight.detach().new_zeros(1, batch_size, self.num_hiddens)
        return [(zeros, zeros.clone()) if self._has_cell else zeros for _ in self.layers]

    def forward(self, ids: Tensor, state: State, draws: Draws | None = None) -> tuple[Tensor, State]:
        """Return logits of shape ``(B, T, V)`` and the state after the last step.

        ``ids``: ``(B, T)`` of int64. ``draws`` gives the dropout masks of training; without
        it nothing is dropped.
        """
        if self.embedding is None:
            # Not F.one_hot, which makes whole numbers of eight bytes first.
            hidden = self.output.weight.new_zeros(*ids.shape, self.vocab_size)  # (B, T, V)
            hidden.scatter_(2, ids[..., None], 1.0)
        else:
            hidden = self._drop(self.embedding(ids), draws)  # (B, T, E)
        new_state: State = []
        for layer, layer_state in zip(self.layers, state, strict=True):
            hidden, layer_state = layer(hidden, layer_state)  # (B, T, h)
            hidden = self._drop(hidden, draws)
            new_state.append(layer_state)
        return self.output(hidden), new_state

    @torch.no_grad()
    def nats(self, ids: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Return -log p of targets ``(B, T)``, on the CPU in double precision, and the state after ids ``(B, T)``."""
        hidden, new_state = self._outputs(ids, state)
        return surprisals_of_outputs(hidden, targets, self.output), new_state

    @torch.no_grad()
    def advance_state(self, ids: Tensor, state: State) -> State:
        """Return the state after ids ``(B, T)``."""
        return self._outputs(ids, state)[1]

    def _outputs(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Return what the last layer gives, ``(B, T, h)``, and the state, without one-hot vectors."""
        layers = [layer for layer in self.layers if isinstance(layer, nn.RNNBase)]
        if self.embedding is None:
            # What a token gives the sums is a column of the matrix: the layer gets it as its input.
            columns = layers[0].get_parameter("weight_ih_l0").T.contiguous()
            hidden, layers[0] = F.embedding(ids, columns), _without_matrix(layers[0])
        else:
            hidden = self.embedding(ids)
        new_state: State = []
        for layer, layer_state in zip(layers, state, strict=True):
            hidden, layer_state = layer(hidden, layer_state)  # (B, T, h)
            new_state.append(layer_state)
        return hidden, new_state

    def _drop(self, hidden: Tensor, draws: Draws | None) -> Tensor:
        return hidden if draws is None or self.dropout == 0 else hidden * draws.mask(hidden, self.dropout)

    @torch.no_grad()
    def step_fn(self, state: State) -> Callable[[Tensor], Tensor]:
        """Return a function from one token a lane ``(B,)`` to logits ``(B, V)``; the state goes on inside it."""

        def step(ids: Tensor) -> Tensor:
            nonlocal state
            logits: Tensor
            logits, state = self(ids[:, None], state)
            return logits[:, 0]

        return step

    def continue_greedily(self, ids: Tensor, state: State, num_preds: int) -> Tensor:
        """Return ``(B, num_preds)`` tokens that follow ``ids`` (B,), each the likeliest but token 0."""
        return continue_by_steps(self, ids, state, num_preds)

    def weights(self) -> Weights:
        """Return copies of the weights by name, on the CPU; tied weights come once."""
        return {name: parameter.detach().cpu().clone() for name, parameter in self.named_parameters()}

    @torch.no_grad()
    def load_weights(self, weights: Weights) -> None:
        """Copy weights in, by name."""
        for name, parameter in self.named_parameters():
            parameter.copy_(weights[name])

    def team(self) -> AbstractContextManager[None]:
        """Return a context that does nothing: PyTorch keeps threads of its own."""
        return nullcontext()

    def compute_gradients(
        self, inputs: Tensor, targets: Tensor, state: State, draws: Draws | None = None
    ) -> tuple[Tensor, State]:
        """Set the parameters' gradients to those of the mean loss; return each target's -log p and the new state.

        ``inputs``, ``targets``, the nats: ``(B, T)``. The new state is detached from the graph.
        """
        self.zero_grad(set_to_none=True)
        logits, new_state = self(inputs, state, draws)
        log_probs = F.log_softmax(logits, 2)  # (B, T, V)
        torch.autograd.backward(F.nll_loss(log_probs.flatten(0, 1), targets.flatten()))
        nats = -log_probs.detach().gather(2, targets[:, :, None])[:, :, 0]
        return nats, [_detached(layer) for layer in new_state]


def _without_matrix(layer: nn.RNNBase) -> nn.RNNBase:
    """Return a layer that takes an input's share of the sums for input, and is otherwise the same."""
    matrix = layer.get_parameter("weight_ih_l0")
    options = {"nonlinearity": layer.nonlinearity} if isinstance(layer, nn.RNN) else {}
    make: Callable[..., nn.RNNBase] = type(layer)
    made = make(len(matrix), layer.hidden_size, batch_first=True, device="meta", **options)
    identity = torch.eye(len(matrix), device=matrix.device, dtype=matrix.dtype)
    made.load_state_dict(layer.state_dict() | {"weight_ih_l0": identity}, assign=True)
    return made


def _detached(state: LayerState) -> LayerState:
    return (state[0].detach(), state[1].detach()) if isinstance(state, tuple) else state.detach()
