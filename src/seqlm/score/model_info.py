"""What a model is: the properties that tables, figures and sentences about it depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

DYNAMIC = "+dynamic"
"""Appended to the names of dynamic models."""

Family = Literal["ngram", "network", "mixture"]


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that tables, figures and sentences about it depend on: its name is never parsed."""

    name: str
    family: Family
    token: Kind
    """Kind of token that the model predicts."""
    train_chars: int
    """Characters of train that the model was trained on; the largest number among the members of a mixture."""
    counted_token: Kind | None = None
    """N-gram models: kind of token whose n-grams are counted. It differs from ``token`` for a model over words that is
    read as a model over characters."""
    smoothing: str | None = None
    """N-gram models: smoothing method."""
    order: int | None = None
    """N-gram models: order, in tokens of kind ``counted_token``; 0 for the uniform distribution."""
    network: str | None = None
    """Networks: kind of network, such as lstm."""
    epoch: Literal["last", "best"] | None = None
    """Networks: whether the weights are those of the last epoch, or those that were best on val."""
    dynamic: bool = False
    """Whether the model, or a member of the mixture, keeps learning from the text that it predicts."""
    chosen_on_val: bool = False
    """Whether settings, weights or the epoch of the model were chosen on val, so that it looks better there."""
    members: tuple[str, ...] = ()
    """Mixtures: the names of the members. Dynamic models: the name of the static model."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the model whose fields a JSON file holds."""
        return cls(**{**value, "members": tuple(value["members"])})

    def as_dynamic(self) -> Self:
        """Return the description of the same model if it keeps learning from the text that it predicts."""
        return replace(self, name=f"{self.name}{DYNAMIC}", dynamic=True, chosen_on_val=True, members=(self.name,))

    @property
    def counts_predicted_token(self) -> bool:
        """Whether this is an n-gram model over the tokens that it predicts."""
        return self.family == "ngram" and self.counted_token == self.token


def describe_ngram(
    smoothing: str, order: int, vocab: Vocab, num_tokens: int | None = None, *, chosen_on_val: bool = False
) -> ModelInfo:
    """Return the description of an n-gram model over the tokens of a vocabulary.

    ``num_tokens``: the first tokens of train that it counts, if these are not all.
    """
    name = "-".join([vocab.kind, smoothing, *([str(order)] if order else [])])
    return ModelInfo(
        name if num_tokens is None else f"{name}@{num_tokens}",
        "ngram",
        vocab.kind,
        beginning_chars(vocab, num_tokens),
        counted_token=vocab.kind,
        smoothing=smoothing,
        order=order,
        chosen_on_val=chosen_on_val,
    )


def beginning_chars(vocab: Vocab, num_tokens: int | None) -> int:
    """Return about how many characters the first tokens of train have, or all of it if ``num_tokens`` is None."""
    num_chars, all_tokens = vocab.num_chars["train"], vocab.splits["train"].num_tokens
    return round(num_chars * min((num_tokens or all_tokens) / all_tokens, 1.0))
