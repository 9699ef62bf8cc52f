"""Long short-term memory."""

from seqlm.networks.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.networks.framework:FrameworkRNN",
    fixed={"num_heads": 1, "truncation": "regular", "activation": "tanh"},
    parameters="seqlm.networks.parameters:layers_parameters",
)
