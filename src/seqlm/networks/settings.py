"""Settings of a network."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from seqlm.core.layout import MODEL_FORMAT
from seqlm.core.settings import Device, NumThreads, Section
from seqlm.core.stored import Sha256, Stored, VocabKey
from seqlm.networks.architectures import ARCHITECTURES


def _require_known(name: str) -> str:
    if name not in ARCHITECTURES:
        raise ValueError(f"should be one of {', '.join(ARCHITECTURES)}")
    return name


class NetworkSettings(Section):
    """Everything that decides a network's shape and how it computes."""

    model: Annotated[str, AfterValidator(_require_known)]
    """A name of :mod:`seqlm.networks.architectures`."""
    activation: Literal["tanh", "relu"]
    """Of the models ``scratch`` and ``rnn``."""
    num_hiddens: Annotated[int, Field(ge=1, le=65536)]
    num_layers: Annotated[int, Field(ge=1, le=64)]
    num_heads: Annotated[int, Field(ge=1, le=1024)]
    """Of ``transformer``: heads of attention in each layer, each of size ``num_hiddens /
    num_heads``."""
    num_steps: Annotated[int, Field(ge=1, le=10**6)]
    """Tokens of a subsequence of a minibatch; also the window of a ``transformer``."""
    embedding: Literal["one_hot", "learned"]
    """How a token enters the network: as a one-hot vector, or as a learned vector of
    ``embedding_size``."""
    embedding_size: Annotated[int, Field(ge=1, le=65536)] | None
    """Size of a learned embedding; null: ``num_hiddens``."""
    tie_weights: bool
    """Use the learned embedding as the output matrix too."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Share of units dropped between layers, with one mask for all steps of a minibatch."""
    engine: Literal["auto", "framework"]
    """What computes the network. ``auto``: compiled loops if the model has them and they fit the
    device; ``framework``: PyTorch, whose own layers section 8.6 uses."""

    @property
    def size_of_embedding(self) -> int | None:
        """Size of a learned embedding; None: tokens enter as one-hot vectors."""
        return None if self.embedding == "one_hot" else self.embedding_size or self.num_hiddens

    @model_validator(mode="after")
    def _fits_architecture(self) -> "NetworkSettings":
        for name, value in ARCHITECTURES[self.model].fixed.items():
            if getattr(self, name, value) != value:
                raise ValueError(
                    f"model {self.model} needs {name}: {'null' if value is None else value}"
                )
        if self.num_hiddens % self.num_heads:
            raise ValueError("num_heads must divide num_hiddens")
        if self.tie_weights and self.embedding != "learned":
            raise ValueError("tie_weights needs embedding: learned")
        if self.tie_weights and self.embedding_size not in (None, self.num_hiddens):
            raise ValueError("tie_weights needs embedding_size null or equal to num_hiddens")
        if self.embedding == "one_hot" and self.embedding_size is not None:
            raise ValueError("embedding_size belongs to embedding: learned")
        return self


class NetworkDefaults(Section):
    """How a network runs if it is opened without other settings."""

    device: Device = "cpu"
    num_threads: NumThreads = 1


class NetworkMetadata(Section):
    """What opening a stored network needs."""

    network: NetworkSettings
    vocab: VocabKey
    sha256: Sha256
    """Of the weights."""
    defaults: NetworkDefaults


class NetworkFile(Stored):
    """The content of ``model.json``."""

    version = MODEL_FORMAT
    advice = "train again"

    model: Any
    """What the model is."""
    metadata: NetworkMetadata
