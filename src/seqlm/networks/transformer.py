"""A small transformer: decoder-only, with the norm before each part (Radford et al. 2019; Xiong et
al. 2020).

With X (B, T, h) the embeddings of the tokens, each layer computes

    X <- X + Attention(Norm(X))     Attention mixes each position with those before it
    X <- X + MLP(Norm(X))           MLP(X) = GELU(X W_1 + b_1) W_2 + b_2, 4 h wide inside

and the logits are Norm(X) W_o + b_o. Attention sees positions by rotations of its queries and keys
(Su et al. 2021).

A transformer has no recurrent state: it reads a window of at most W tokens. Longer texts are read
in windows that overlap by half, so that every token, except those at the beginning of the text, is
predicted from at least half a window.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.networks.network import DropoutMask, Ids
from seqlm.networks.settings import NetworkSettings
from seqlm.networks.torch_network import TorchNetwork

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the angles of T positions, each ``(T, d / 2)`` for heads of size d."""

_ROTARY_BASE = 1000.0
"""The slowest pair of components turns by about 1 radian in as many positions."""
_TOKENS_AT_ONCE = 1 << 13
"""Most tokens, in all windows, that are read at once: the memory of a long text is bounded."""


def rotate(vectors: Tensor, rotation: Rotation) -> Tensor:
    """Turn pairs of components of ``vectors`` (..., T, d), i and i + d / 2, by the angles of their
    positions.

    The product of a query and a key then depends on their positions only through the distance. If d
    is odd, the last component stays as it is.
    """
    cosines, sines = rotation
    half = cosines.shape[1]
    first, second, rest = torch.split(vectors, [half, half, vectors.shape[-1] - 2 * half], -1)
    return torch.cat([first * cosines - second * sines, first * sines + second * cosines, rest], -1)


class Layer(nn.Module):
    """Causal self-attention and an MLP, each added to its input."""

    def __init__(self, num_hiddens: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens)
        # Queries, keys and values.
        self.attention_input = nn.Linear(num_hiddens, 3 * num_hiddens)
        self.attention_output = nn.Linear(num_hiddens, num_hiddens)
        self.mlp_input = nn.Linear(num_hiddens, 4 * num_hiddens)
        self.mlp_output = nn.Linear(4 * num_hiddens, num_hiddens)

    def forward(
        self, hidden: Tensor, rotation: Rotation, drop: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the outputs ``(B, T, h)`` for inputs ``(B, T, h)``."""
        hidden = hidden + drop(self._attend(self.attention_norm(hidden), rotation))
        return hidden + drop(self.mlp_output(F.gelu(self.mlp_input(self.mlp_norm(hidden)))))

    def _attend(self, hidden: Tensor, rotation: Rotation) -> Tensor:
        projected = self.attention_input(hidden).unflatten(
            2, (3, self.num_heads, -1)
        )  # (B, T, 3, heads, d)
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)  # (B, heads, T, d) each
        queries, keys = rotate(queries, rotation), rotate(keys, rotation)
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        output: Tensor = self.attention_output(mixed.transpose(1, 2).flatten(2))
        return output


class Transformer(TorchNetwork):
    """A transformer whose window W is ``num_steps``.

    Shapes: V vocabulary, h hidden units, B batch rows, T steps, K windows of w tokens, where w = W
    or, if the text is shorter, K = 1. Dropout comes after the embedding and before each addition,
    with one mask for all positions. The state holds the tokens of the current window, ``(B, p)``
    with p <= W.
    """

    _cosines: Tensor
    _sines: Tensor

    def __init__(self, settings: NetworkSettings, vocab_size: int) -> None:
        """A network with PyTorch's own weights, until
        :func:`~seqlm.networks.building.build_network` draws them."""
        super().__init__()
        self.vocab_size, self.window = vocab_size, settings.num_steps
        self.dropout, self._overlap = settings.dropout, self.window // 2
        num_hiddens, double = settings.num_hiddens, torch.float64
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        layers = (Layer(num_hiddens, settings.num_heads) for _ in range(settings.num_layers))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(num_hiddens)
        self.output = nn.Linear(num_hiddens, vocab_size)
        if settings.tie_weights:
            self.output.weight = self.embedding.weight
        head_size = num_hiddens // settings.num_heads
        speeds = _ROTARY_BASE ** (
            -torch.arange(head_size // 2, dtype=double) / max(head_size // 2, 1)
        )
        angles = torch.arange(self.window, dtype=double)[:, None] * speeds  # (W, d / 2)
        self.register_buffer("_cosines", angles.cos().float(), persistent=False)
        self.register_buffer("_sines", angles.sin().float(), persistent=False)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the empty window of ``batch_size`` rows, shape ``(batch_size, 0)``."""
        return torch.empty(batch_size, 0, dtype=torch.int64, device=self.device)

    def forward(
        self, ids: Tensor, state: Tensor, draw_mask: DropoutMask | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)`` of int64, and the window after the last
        step, ``(B, p)``."""
        windows, state, num_known = self._windows(ids, state)  # (B, K, w)
        rows = windows.flatten(0, 1)
        at_once = len(rows) if draw_mask is not None else max(_TOKENS_AT_ONCE // rows.shape[1], 1)
        hidden = torch.cat(
            [self._hidden(part, draw_mask) for part in torch.split(rows, at_once)]
        )  # (B * K, w, h)
        hidden = torch.unflatten(hidden, 0, windows.shape[:2])
        # Each window but the first one predicts only what follows the overlap.
        hidden = torch.cat([hidden[:, 0], hidden[:, 1:, self._overlap :].flatten(1, 2)], 1)
        return self.output(hidden[:, num_known : num_known + ids.shape[1]]), state

    @torch.no_grad()
    def advance_state(self, ids: Ids, state: Tensor) -> Tensor:
        """Return the window after ids ``(B, T)``."""
        return self._windows(self.tensor(ids), state)[1]

    def _windows(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return windows of a text, ``(B, K, w)``; its last window; and how many tokens of the
        first are in ``state``.

        The last of the K windows is padded.
        """
        # Of a window that is full, the last half.
        known = state if state.shape[1] < self.window else state[:, self.window - self._overlap :]
        text = torch.cat([known, ids], 1)  # (B, n)
        length, stride = min(text.shape[1], self.window), self.window - self._overlap
        windows = F.pad(text, (0, (length - text.shape[1]) % stride)).unfold(1, length, stride)
        return windows, text[:, (windows.shape[1] - 1) * stride :], known.shape[1]

    def _hidden(self, ids: Tensor, draw_mask: DropoutMask | None) -> Tensor:
        """Return what the output layer reads, ``(N, T, h)``, for N windows of T tokens."""
        rotation = self._cosines[: ids.shape[1]], self._sines[: ids.shape[1]]
        drop = partial(self.drop, draw_mask=draw_mask)
        hidden = drop(self.embedding(ids))
        for layer in self.layers:
            hidden = layer(hidden, rotation, drop)
        normed: Tensor = self.norm(hidden)
        return normed
