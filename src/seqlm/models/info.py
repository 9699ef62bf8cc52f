"""What a model is: the properties that tables, figures and sentences about it depend on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from seqlm.core.errors import DataError
from seqlm.core.layout import MODEL_FORMAT
from seqlm.core.settings import Section
from seqlm.core.stored import Digests, Stored
from seqlm.networks.settings import NetworkFile
from seqlm.train.settings import RunConfig
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:  # training depends on this module, but not on n-grams
    from seqlm.ngrams.models.base import NGramModel

DYNAMIC = "+dynamic"
"""Appended to the names of dynamic models."""

Family = Literal["ngram", "network", "mixture"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@+-]*$")]
"""The name of a model, which is also that of a file or folder."""


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that tables, figures and sentences about it depend on: its name is
    never parsed."""

    name: Name
    """The identifier: what is typed, and what files and folders are called. People read what
    :func:`~seqlm.pipeline.evaluate.names.display_names` returns."""
    family: Family
    token: Kind
    """Kind of token that the model predicts."""
    train_chars: int
    """Characters of train that the model was trained on; the largest number among the members of a
    mixture."""
    train_tokens: int | None = None
    """The number of first tokens of train that the model was trained on, if these are not all."""
    counted_token: Kind | None = None
    """N-gram models: kind of token whose n-grams are counted. It differs from ``token`` for a model
    over words that is read as a model over characters."""
    smoothing: str | None = None
    """N-gram models: smoothing method."""
    order: Annotated[int, Field(ge=0)] | None = None
    """N-gram models: order, in tokens of kind ``counted_token``; 0 for the uniform distribution."""
    network: str | None = None
    """Networks: kind of network, such as lstm."""
    run: Name | None = None
    """Networks: the run that trained it."""
    sampling: str | None = None
    """Networks: how minibatches were cut from the text."""
    as_in_chapter: bool = False
    """Networks: whether the settings are those of sections 8.5 and 8.6 of the book."""
    epoch: Literal["last", "best"] | None = None
    """Networks: whether the weights are those of the last epoch, or those that were best on val."""
    dynamic: bool = False
    """Whether the model, or a member of the mixture, keeps learning from the text that it
    predicts."""
    chosen_on_val: bool = False
    """Whether settings, weights or the epoch of the model were chosen on val, so that it looks
    better there."""
    members: tuple[Name, ...] = ()
    """Mixtures: the names of the members. Dynamic models: the name of the static model."""

    def as_dynamic(self) -> "ModelInfo":
        """Return the description of the same model if it keeps learning from the text that it
        predicts."""
        return replace(
            self,
            name=f"{self.name}{DYNAMIC}",
            dynamic=True,
            chosen_on_val=True,
            members=(self.name,),
        )

    @property
    def counts_own_tokens(self) -> bool:
        """Whether this is an n-gram model over the tokens that it predicts."""
        return self.family == "ngram" and self.counted_token == self.token


def _require_consistent(info: ModelInfo) -> ModelInfo:
    if info.family != "mixture":
        if info.dynamic and [f"{member}{DYNAMIC}" for member in info.members] != [info.name]:
            raise ValueError("the member of a dynamic model is the static one")
        if info.counted_token not in (None, info.token, {"char": "word"}.get(info.token)):
            raise ValueError("only a model over words can be read as one over characters")
    return info


StoredInfo = Annotated[ModelInfo, AfterValidator(_require_consistent)]


@dataclass(frozen=True)
class Description:
    """What was stored of a model when it was made."""

    info: ModelInfo
    metadata: Any
    """What opening the model needs besides, and what else is known of it."""
    path: Path
    """The file that holds the description."""


class Choices(Section):
    """The settings of a network that keeps learning."""

    dynamic_lr: Annotated[float, Field(ge=0)]
    dynamic_decay: Annotated[float, Field(ge=0)]


class Metadata(Section):
    """What is known of a scored model, besides what it is."""

    metrics: Mapping[str, dict[str, Any]] = Field(default={})
    """Of each split."""
    choices: Choices | None = None
    positions: list[float | None] | None = None
    """Perplexity by tokens of context."""
    weights: dict[Name, Annotated[float, Field(ge=0, le=1)]] | None = None
    """Of the members of a mixture."""
    sha256: Digests = Field(default={})
    """Of the file of each split's surprisals."""


class ModelFile(Stored):
    """The description of a model."""

    version = MODEL_FORMAT
    advice = "run the pipeline again"

    model: StoredInfo
    metadata: Metadata

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        info, metadata = self.model, self.metadata
        if info.family == "mixture" and (metadata.weights or {"": 0.0}).keys() != {*info.members}:
            raise ValueError("a mixture needs a weight for each member")
        if info.family == "network" and info.dynamic and metadata.choices is None:
            raise ValueError("a network that keeps learning needs settings")
        return self


class NetworkDescription(NetworkFile):
    """The description of a network."""

    model: StoredInfo


F = TypeVar("F", ModelFile, NetworkDescription)


def read_description(path: Path, form: type[F]) -> F:
    """Return the description of a model, whose name is that of the file or of its folder.

    Raises DataError if it is not the one of this file.
    """
    description = form.read(path)
    info = description.model
    if info.name != (path.stem if info.family == "mixture" else path.parent.name):
        raise DataError(f"{path}: describes another model, {info.name!r}: {form.advice}")
    return description


def ngram_info(
    smoothing: str,
    order: int,
    vocab: Vocab,
    num_tokens: int | None = None,
    *,
    chosen_on_val: bool = False,
) -> ModelInfo:
    """Return the description of an n-gram model over the tokens of a vocabulary.

    ``num_tokens``: the first tokens of train that it counts, if these are not all.
    """
    name = f"{vocab.kind}-{smoothing}"
    if order:
        name += f"-{order}"
    if num_tokens is not None:
        name += f"@{num_tokens}"
    return ModelInfo(
        name,
        "ngram",
        vocab.kind,
        beginning_chars(vocab, num_tokens),
        train_tokens=num_tokens,
        counted_token=vocab.kind,
        smoothing=smoothing,
        order=order,
        chosen_on_val=chosen_on_val,
    )


def describe_ngrams(
    models: "Iterable[NGramModel]", vocab: Vocab, num_tokens: int | None = None
) -> list[ModelInfo]:
    """Return what n-gram models of train, or of its first tokens, are."""
    return [
        ngram_info(
            model.smoothing, model.order, vocab, num_tokens, chosen_on_val=model.chosen_on_val
        )
        for model in models
    ]


def char_from_words_info(words: ModelInfo) -> ModelInfo:
    """Return what a model over words is if it is read as a model over characters."""
    return replace(words, name=f"char-by-word-{words.smoothing}-{words.order}", token="char")


def dynamic_ngram_info(order: int, counted: Vocab, token: Kind) -> ModelInfo:
    """Return what a Kneser-Ney model is that keeps counting, and predicts tokens of a kind."""
    info = ngram_info("kneser-ney", order, counted)
    return (info if token == counted.kind else char_from_words_info(info)).as_dynamic()


def network_info(config: RunConfig, vocab: Vocab) -> ModelInfo:
    """Return the description of the network that was trained with these settings."""
    is_part = config.max_tokens is not None and config.max_tokens < vocab.splits["train"].num_tokens
    return ModelInfo(
        config.run,
        "network",
        config.token,
        beginning_chars(vocab, config.max_tokens),
        train_tokens=config.max_tokens if is_part else None,
        network=config.model,
        run=config.run,
        sampling=config.sampling,
        epoch=config.checkpoint,
        chosen_on_val=config.checkpoint == "best" or config.patience is not None,
    )


def mixture_info(members: Sequence[ModelInfo]) -> ModelInfo:
    """Return what a mixture is; its name joins those of its members, dynamic ones first and marked
    once."""
    dynamic = [member.members[0] for member in members if member.dynamic]
    static = [member.name for member in members if not member.dynamic]
    names = [*dynamic[:-1], dynamic[-1] + DYNAMIC, *static] if dynamic else static
    return ModelInfo(
        "+".join(names),
        "mixture",
        members[0].token,
        max(member.train_chars for member in members),
        dynamic=bool(dynamic),
        chosen_on_val=True,
        members=tuple(member.name for member in members),
    )


def beginning_chars(vocab: Vocab, num_tokens: int | None) -> int:
    """Return about how many characters the first tokens of train have, or all of it if
    ``num_tokens`` is None."""
    train = vocab.splits["train"]
    return round(train.num_chars * min((num_tokens or train.num_tokens) / train.num_tokens, 1.0))
