"""Settings of the ``score`` stage."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator

from seqlm.core.settings import Section
from seqlm.vocab.settings import Kind, Order, require_every_kind

By = Literal["token", "char", "word", "line"]
"""The unit of a row in a table of surprisals."""
Space = Literal["before", "after"]
"""Where a blank belongs that is between two units: to the one that it precedes, or to the one that it follows."""
UNITS: tuple[By, ...] = get_args(By)
SPACES: tuple[Space, ...] = get_args(Space)
LearningRate = Annotated[float, Field(gt=0, le=1e3)]


class DynamicParams(Section):
    """Dynamic evaluation: a network keeps learning from text that it has predicted."""

    lrs: Annotated[list[LearningRate], Field(min_length=1, max_length=50)]
    """Learning rates to choose from, on val."""
    decays: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1, max_length=50)]
    """Shares of the way back to the trained weights to choose from, on val."""
    update_every: Annotated[int, Field(ge=1, le=100_000)]
    """Tokens between two updates."""
    rms_segments: Annotated[int, Field(ge=1, le=1_000_000)]
    """Segments of train whose gradients give the root mean squares."""


class DynamicCountsParams(Section):
    """Dynamic counts: a Kneser-Ney model for each kind of token that keeps counting text that it has predicted."""

    order: dict[Kind, Order]
    """Order of the model, for each kind of token."""
    num_updates: Annotated[int, Field(ge=1, le=100_000)]
    """How many times in a split everything is counted again, with the text so far."""
    max_tokens: Annotated[int, Field(ge=0, le=10**9)]
    """The model is omitted if train has more tokens, because counting again and again is slow and adds little."""

    @field_validator("order")
    @classmethod
    def _one_each(cls, order: dict[Kind, int]) -> dict[Kind, int]:
        require_every_kind("order", order)
        return order

    def order_for(self, kind: Kind, num_tokens: int) -> int:
        """Return the order of the model over a kind of token, at most the number of tokens of train."""
        return min(self.order[kind], num_tokens)


class TrainSubsetParams(Section):
    """Kneser-Ney models of the first tokens of train, on equal terms with runs that have as few ``max_tokens``."""

    max_tokens: Annotated[int, Field(ge=1, le=10**9)]
    """Tokens that they count. There are no such models if train has no more."""
    orders: dict[Kind, Annotated[list[Order], Field(min_length=1, max_length=50)]]
    """Orders of the models over some kinds of token."""


class WordToCharParams(Section):
    """The model over words, read as a model over characters."""

    max_words: Annotated[int, Field(ge=0, le=10**9)]
    """It is omitted if train has more words, because scoring it is slow."""


class ScoreParams(Section):
    """How models are scored."""

    word_to_char: WordToCharParams
    train_subset: TrainSubsetParams | None
    """Also score n-gram models of the first tokens of train only; null: do not."""
    dynamic: DynamicParams | None
    """Also evaluate the runs that saw all of train dynamically; null: do not."""
    dynamic_counts: DynamicCountsParams | None
    """Also score n-gram models that keep counting; null: do not."""
