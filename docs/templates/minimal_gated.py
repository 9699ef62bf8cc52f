"""A template for a new kind of network: one layer of minimal gated units (Zhou et al. 2016), from the equations.

F_t = sigmoid(X_t W_xf + H_{t-1} W_hf + b_f)
N_t = tanh(X_t W_xn + (F_t * H_{t-1}) W_hn + b_n)
H_t = (1 - F_t) * H_{t-1} + F_t * N_t

Its entry in ARCHITECTURES fixes {"activation": "tanh", "num_layers": 1, "num_heads": 1, "embedding": "one_hot",
"truncation": "regular"}.
"""

import torch
from torch import Tensor, nn

from seqlm.networks.network import DropoutMask
from seqlm.networks.settings import NetworkSettings
from seqlm.networks.torch_network import TorchNetwork


class MinimalGatedRNN(TorchNetwork):
    """One layer of minimal gated units between one-hot input and an output layer.

    Shapes: V vocabulary, h hidden units, B batch rows, T steps. The state is ``(B, h)``.
    """

    def __init__(self, settings: NetworkSettings, vocab_size: int) -> None:
        """A network whose weights are drawn later, from U(-1 / sqrt(h), 1 / sqrt(h))."""
        super().__init__()
        self.vocab_size, self.num_hiddens, self.dropout = (vocab_size, settings.num_hiddens, settings.dropout)
        self.inputs = nn.Embedding(vocab_size, 2 * self.num_hiddens)  # rows of W_xf and W_xn
        self.forget = nn.Linear(self.num_hiddens, self.num_hiddens)
        self.candidate = nn.Linear(self.num_hiddens, self.num_hiddens)
        self.output = nn.Linear(self.num_hiddens, vocab_size)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return the zero state of ``batch_size`` rows."""
        return self.output.weight.detach().new_zeros(batch_size, self.num_hiddens)

    def forward(self, ids: Tensor, state: Tensor, draw_mask: DropoutMask | None = None) -> tuple[Tensor, Tensor]:
        """Return logits ``(B, T, V)`` for ids ``(B, T)``, and the state after the last step."""
        hiddens = []
        for inputs in self.inputs(ids).unbind(1):
            to_forget, to_candidate = inputs.chunk(2, 1)  # (B, h) each
            forget = torch.sigmoid(to_forget + self.forget(state))
            candidate = torch.tanh(to_candidate + self.candidate(forget * state))
            state = torch.lerp(state, candidate, forget)
            hiddens.append(state)
        outputs = self.drop(torch.stack(hiddens, 1), draw_mask)  # (B, T, h)
        return self.output(outputs), state
