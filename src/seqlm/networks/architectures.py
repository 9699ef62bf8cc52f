"""The architectures of networks, by the names that the setting ``train.model`` takes.

They are named as ``module:callable`` and imported when one is made: settings are checked without
PyTorch.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Architecture(NamedTuple):
    """An architecture: how it is made, and which settings it does not let vary."""

    network: str
    """A callable that gets the settings and the vocabulary size, and returns a
    :class:`seqlm.networks.torch_network.TorchNetwork` on the CPU."""
    fixed: Mapping[str, object]
    """Settings, of training too, for which the network supports only one value."""

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.network.partition(":")[0]


_LAYERS = "seqlm.networks.framework:FrameworkRNN"
_RNN = {"num_heads": 1, "truncation": "regular"}

ARCHITECTURES = {
    "gru": Architecture(_LAYERS, _RNN | {"activation": "tanh"}),
    "lstm": Architecture(_LAYERS, _RNN | {"activation": "tanh"}),
    "rnn": Architecture(_LAYERS, _RNN),
    "scratch": Architecture(
        "seqlm.networks.scratch:ScratchRNN",
        {"num_layers": 1, "num_heads": 1, "embedding": "one_hot", "dropout": 0.0},
    ),
    "transformer": Architecture(
        "seqlm.networks.transformer:Transformer",
        {
            "activation": "tanh",
            "embedding": "learned",
            "embedding_size": None,
            "truncation": "regular",
        },
    ),
}
