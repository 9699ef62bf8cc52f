"""Long short-term memory."""

from seqlm.rnn.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.rnn.framework:FrameworkRNN",
    fixed={"num_heads": 1, "truncation": "regular", "activation": "tanh"},
    parameters="seqlm.rnn.parameters:layers_parameters",
)
