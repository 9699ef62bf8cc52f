"""What the modules of :mod:`seqlm.networks.kinds` declare, and finding them by name.

They import no PyTorch: settings are checked without it.
"""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

from seqlm.networks import kinds


class NetworkKind(NamedTuple):
    """A kind of network: how it is made, and which settings it does not let vary.

    Networks are named as ``module:callable`` and imported when one is made.
    """

    network: str
    """A callable that gets the settings, the vocabulary size and the seed, and returns a
    :class:`seqlm.networks.torch_network.TorchNetwork` on the CPU."""
    fixed: Mapping[str, object]
    """Settings, of training too, of which the network supports one value only."""
    parameters: str | None = None
    """A function from settings and the vocabulary size to :class:`seqlm.networks.parameters.Parameters`, for the
    compiled loops that compute the same network on a CPU. None: the kind has no compiled loops."""


def network_kinds() -> tuple[str, ...]:
    """Return the names of all kinds: those of the modules of the package."""
    return tuple(module.name for module in pkgutil.iter_modules(kinds.__path__))


def network_kind(name: str) -> NetworkKind:
    """Return the kind of this name, the ``KIND`` of its module."""
    kind: NetworkKind = import_module(f"{kinds.__name__}.{name}").KIND
    return kind
