"""Minimal gated units."""

from seqlm.networks.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.networks.minimal_gated:MinimalGatedRNN",
    fixed={"activation": "tanh", "num_layers": 1, "num_heads": 1, "embedding": "one_hot", "truncation": "regular"},
)
