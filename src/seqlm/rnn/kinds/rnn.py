"""The framework's RNN (section 8.6)."""

from seqlm.rnn.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.rnn.framework:FrameworkRNN",
    fixed={"num_heads": 1, "truncation": "regular"},
    parameters="seqlm.rnn.parameters:layers_parameters",
)
