"""What a model is, as data: nothing is ever read from a model's name."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from seqlm.vocab.kinds.registry import Kind
from seqlm.vocab.vocabulary import Vocab

DYNAMIC = "+dynamic"
"""Appended to the names of dynamic models."""

Family = Literal["ngram", "network", "mixture"]


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that tables, figures and sentences about it depend on."""

    name: str
    family: Family
    token: Kind
    """Kind of token that the model predicts."""
    train_chars: int
    """Characters of train that the model was trained on; the largest number among the members of a mixture."""
    counted_token: Kind | None = None
    """Of an n-gram model: kind of token whose n-grams were counted. It differs from ``token`` if a model over words is
    read as a model over characters."""
    smoothing: str | None = None
    """Of an n-gram model."""
    order: int | None = None
    """Of an n-gram model, in tokens of kind ``counted_token``; 0 for the uniform distribution."""
    network: str | None = None
    """Of a network: its kind, such as lstm."""
    dynamic: bool = False
    """Whether the model, or a member of the mixture, keeps learning from the text that it predicts."""
    members: tuple[str, ...] = ()
    """Of a mixture: the names of its members. Of a dynamic model: the name of the model that it is without updates."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return what :meth:`to_json` returned."""
        return cls(**{**value, "members": tuple(value["members"])})

    def to_json(self) -> dict[str, Any]:
        """Return the properties as plain values."""
        return asdict(self) | {"members": list(self.members)}

    def as_dynamic(self) -> Self:
        """Return what the model is if it keeps learning from the text that it predicts."""
        return replace(self, name=f"{self.name}{DYNAMIC}", dynamic=True, members=(self.name,))

    @property
    def counts_predicted_token(self) -> bool:
        """Whether this is an n-gram model over the tokens that it predicts."""
        return self.family == "ngram" and self.counted_token == self.token


def describe_ngram(smoothing: str, order: int, vocab: Vocab) -> ModelInfo:
    """Return what an n-gram model over the tokens of a vocabulary is."""
    name = "-".join([vocab.kind, smoothing, *([str(order)] if order else [])])
    return ModelInfo(
        name,
        "ngram",
        vocab.kind,
        vocab.num_chars["train"],
        counted_token=vocab.kind,
        smoothing=smoothing,
        order=order,
    )
