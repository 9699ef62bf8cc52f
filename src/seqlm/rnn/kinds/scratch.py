"""The RNN of section 8.5, from its equations."""

from seqlm.rnn.network_kinds import NetworkKind

KIND = NetworkKind(
    network="seqlm.rnn.scratch:ScratchRNN.from_settings",
    fixed={"num_layers": 1, "num_heads": 1, "embedding": "one_hot", "dropout": 0.0},
    parameters="seqlm.rnn.parameters:scratch_parameters",
)
