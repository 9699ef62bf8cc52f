"""Recurrent networks on the framework's own layers (section 8.6): rnn, gru, lstm."""

from torch import Tensor, nn

from seqlm.networks.network import DropoutMask
from seqlm.networks.settings import NetworkSettings
from seqlm.networks.torch_network import TorchNetwork

State = list[Tensor | tuple[Tensor, Tensor]]

_LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class FrameworkRNN(TorchNetwork):
    """Layers of ``rnn``, ``gru`` or ``lstm`` between an embedding and an output layer.

    Shapes: V vocabulary, E embedding, h hidden units, B batch rows, T steps. Dropout has one mask
    for all steps of a minibatch (Gal and Ghahramani 2016); it comes before the first layer if the
    embedding is learned, between layers, and before the output.
    """

    def __init__(self, settings: NetworkSettings, vocab_size: int) -> None:
        """A network with PyTorch's own weights, until
        :func:`~seqlm.networks.building.build_network` draws them."""
        super().__init__()
        self.vocab_size, self.num_hiddens = vocab_size, settings.num_hiddens
        self.dropout = settings.dropout
        embedding_size = settings.size_of_embedding
        options = {"nonlinearity": settings.activation} if settings.model == "rnn" else {}
        self.embedding = (
            None if embedding_size is None else nn.Embedding(vocab_size, embedding_size)
        )
        sizes = [embedding_size or vocab_size] + [self.num_hiddens] * (settings.num_layers - 1)
        self.layers = nn.ModuleList(
            _LAYERS[settings.model](size, self.num_hiddens, batch_first=True, **options)
            for size in sizes
        )
        self.output = nn.Linear(self.num_hiddens, vocab_size)
        if settings.tie_weights and self.embedding is not None:
            self.output.weight = self.embedding.weight
        self._has_cell = settings.model == "lstm"

    def initial_state(self, batch_size: int) -> State:
        """Return the zero state: one entry per layer, each ``(1, B, h)``, or a pair of them for an
        lstm."""
        zeros = self.output.weight.detach().new_zeros(1, batch_size, self.num_hiddens)
        return [(zeros, zeros.clone()) if self._has_cell else zeros for _ in self.layers]

    def forward(
        self, ids: Tensor, state: State, draw_mask: DropoutMask | None = None
    ) -> tuple[Tensor, State]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the state after the last
        step."""
        if self.embedding is not None:
            hidden = self.drop(self.embedding(ids), draw_mask)  # (B, T, E)
        else:
            # Not F.one_hot, which makes integers of eight bytes first.
            hidden = self.output.weight.new_zeros(*ids.shape, self.vocab_size)  # (B, T, V)
            hidden.scatter_(2, ids[..., None], 1.0)
        new_state: State = []
        for layer, layer_state in zip(self.layers, state, strict=True):
            hidden, layer_state = layer(hidden, layer_state)  # (B, T, h)
            hidden = self.drop(hidden, draw_mask)
            new_state.append(layer_state)
        return self.output(hidden), new_state
