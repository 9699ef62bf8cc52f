"""The RNN of section 8.5, from its equations."""

from seqlm.networks.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.networks.scratch:ScratchRNN.from_settings",
    fixed={"num_layers": 1, "num_heads": 1, "embedding": "one_hot", "dropout": 0.0},
    parameters="seqlm.networks.parameters:scratch_parameters",
)
