"""Minimal gated units."""

from seqlm.rnn.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.rnn.minimal_gated:MinimalGatedRNN",
    fixed={"activation": "tanh", "num_layers": 1, "num_heads": 1, "embedding": "one_hot", "truncation": "regular"},
)
