"""Settings of a network, and the registry of the kinds of networks."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from seqlm.core.settings import Section


class NetworkKind(NamedTuple):
    """A kind of network: how it is made, and which settings it does not let vary.

    Networks are named as ``module:callable`` and imported when one is made, so that checking settings needs no
    PyTorch. The callable gets the settings, the vocabulary size and the seed, and returns a
    :class:`seqlm.rnn.network.Network` on the CPU.
    """

    network: str
    fixed: Mapping[str, object]
    """Settings, of training too, of which the network supports one value only."""
    parameters: str | None = None
    """A function from settings and the vocabulary size to :class:`seqlm.rnn.parameters.Parameters`, for the compiled
    loops that compute the same network on a CPU. None: the kind has no compiled loops."""


_FRAMEWORK, _LAYERS = "seqlm.rnn.framework:FrameworkRNN", "seqlm.rnn.parameters:layers_parameters"
_ONE_LAYER: dict[str, object] = {"num_layers": 1, "num_heads": 1, "embedding": "one_hot", "dropout": 0.0}
_FIXED_IF_RECURRENT: dict[str, object] = {"num_heads": 1, "truncation": "regular"}
_FIXED_IF_GATED = _FIXED_IF_RECURRENT | {"activation": "tanh"}
_FIXED_IF_TRANSFORMER: dict[str, object] = {
    "activation": "tanh", "embedding": "learned", "embedding_size": None, "truncation": "regular",
}  # fmt: skip
NETWORK_KINDS: dict[str, NetworkKind] = {
    "scratch": NetworkKind(
        "seqlm.rnn.scratch:ScratchRNN.from_settings", _ONE_LAYER, "seqlm.rnn.parameters:scratch_parameters"
    ),
    "rnn": NetworkKind(_FRAMEWORK, _FIXED_IF_RECURRENT, _LAYERS),
    "gru": NetworkKind(_FRAMEWORK, _FIXED_IF_GATED, _LAYERS),
    "lstm": NetworkKind(_FRAMEWORK, _FIXED_IF_GATED, _LAYERS),
    "transformer": NetworkKind("seqlm.rnn.transformer:Transformer", _FIXED_IF_TRANSFORMER),
}
"""The kinds of networks by name. A new kind is a module and an entry here."""


def _require_kind(name: str) -> str:
    if name not in NETWORK_KINDS:
        raise ValueError(f"should be {_listed([repr(kind) for kind in NETWORK_KINDS])}")
    return name


def _listed(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


class NetworkSettings(Section):
    """Everything that decides a network's shape and how it computes."""

    model: Annotated[str, AfterValidator(_require_kind)]
    """The name of a kind in :data:`NETWORK_KINDS`."""
    activation: Literal["tanh", "relu"]
    """Of the models ``scratch`` and ``rnn``."""
    num_hiddens: Annotated[int, Field(ge=1, le=65536)]
    num_layers: Annotated[int, Field(ge=1, le=64)]
    num_heads: Annotated[int, Field(ge=1, le=1024)]
    """Of ``transformer``: heads of attention in each layer, each of size ``num_hiddens / num_heads``."""
    num_steps: Annotated[int, Field(ge=1, le=10**6)]
    """Tokens of a subsequence of a minibatch; also the window of a ``transformer``."""
    embedding: Literal["one_hot", "learned"]
    """How a token enters the network: as a one-hot vector, or as a learned vector of ``embedding_size``."""
    embedding_size: Annotated[int, Field(ge=1, le=65536)] | None
    """Size of a learned embedding; null: ``num_hiddens``."""
    tie_weights: bool
    """Use the learned embedding as the output matrix too."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Share of units dropped between layers, with one mask for all steps of a minibatch."""
    engine: Literal["auto", "framework"]
    """What computes the network. ``auto``: compiled loops if its kind has them and they fit the device; ``framework``:
    PyTorch, whose own layers section 8.6 uses."""

    @property
    def size_of_embedding(self) -> int | None:
        """Size of a learned embedding; None: tokens enter as one-hot vectors."""
        return None if self.embedding == "one_hot" else self.embedding_size or self.num_hiddens

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "NetworkSettings":
        for name, value in NETWORK_KINDS[self.model].fixed.items():
            if getattr(self, name, value) != value:
                others = [kind for kind, entry in NETWORK_KINDS.items() if name not in entry.fixed]
                only = f"{name}: {'null' if value is None else value}"
                raise ValueError(f"model {self.model} supports only {only} (use {_listed(others)})")
        if self.num_hiddens % self.num_heads:
            raise ValueError("num_heads must divide num_hiddens")
        if self.tie_weights and self.embedding != "learned":
            raise ValueError("tie_weights needs embedding: learned")
        if self.tie_weights and self.embedding_size not in (None, self.num_hiddens):
            raise ValueError("tie_weights needs embedding_size null or equal to num_hiddens")
        if self.embedding == "one_hot" and self.embedding_size is not None:
            raise ValueError("embedding_size belongs to embedding: learned")
        return self
