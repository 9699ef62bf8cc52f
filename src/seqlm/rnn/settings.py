"""Settings of a network."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section


class NetworkSettings(Section):
    """Everything that decides a network's shape and how it computes."""

    model: Literal["scratch", "rnn", "gru", "lstm"]
    """``scratch``: this project's own RNN of section 8.5; ``rnn``: the framework's; ``gru``, ``lstm``: the framework's,
    or the same from their equations as compiled loops (:func:`seqlm.rnn.building.build_network`)."""
    activation: Literal["tanh", "relu"]
    """Of the models ``scratch`` and ``rnn``."""
    num_hiddens: Annotated[int, Field(ge=1, le=65536)]
    num_layers: Annotated[int, Field(ge=1, le=64)]
    embedding: Literal["one_hot", "learned"]
    """How a token enters: as a one-hot vector, or as a learned one of ``embedding_size``."""
    embedding_size: Annotated[int, Field(ge=1, le=65536)] | None
    """Size of a learned embedding; null: ``num_hiddens``."""
    tie_weights: bool
    """Use the learned embedding as the output matrix too."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    """Share of units dropped between layers, one mask for all steps of a minibatch."""

    @property
    def size_of_embedding(self) -> int | None:
        """Size of a learned embedding; None: tokens enter as one-hot vectors."""
        return None if self.embedding == "one_hot" else self.embedding_size or self.num_hiddens

    @property
    def has_gates(self) -> bool:
        """Whether the cells are those of a GRU or of an LSTM."""
        return self.model in ("gru", "lstm")

    @model_validator(mode="after")
    def _is_a_network(self) -> "NetworkSettings":
        if self.model == "scratch" and (self.num_layers > 1 or self.dropout > 0 or self.embedding == "learned"):
            raise ValueError("model scratch has one layer, one-hot input and no dropout: use rnn, gru or lstm")
        if self.activation == "relu" and self.model not in ("scratch", "rnn"):
            raise ValueError(f"activation relu belongs to the models scratch and rnn, not {self.model}")
        if self.tie_weights and self.embedding != "learned":
            raise ValueError("tie_weights needs embedding: learned")
        if self.tie_weights and self.embedding_size not in (None, self.num_hiddens):
            raise ValueError("tie_weights needs embedding_size null or equal to num_hiddens")
        if self.embedding == "one_hot" and self.embedding_size is not None:
            raise ValueError("embedding_size belongs to embedding: learned")
        return self
