"""A small transformer; it has no compiled loops."""

from seqlm.networks.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.networks.transformer:Transformer",
    fixed={"activation": "tanh", "embedding": "learned", "embedding_size": None, "truncation": "regular"},
)
