"""A small transformer; it has no compiled loops."""

from seqlm.rnn.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.rnn.transformer:Transformer",
    fixed={"activation": "tanh", "embedding": "learned", "embedding_size": None, "truncation": "regular"},
)
