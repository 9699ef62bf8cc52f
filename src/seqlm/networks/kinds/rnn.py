"""The framework's RNN (section 8.6)."""

from seqlm.networks.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.networks.framework:FrameworkRNN",
    fixed={"num_heads": 1, "truncation": "regular"},
    parameters="seqlm.networks.parameters:layers_parameters",
)
