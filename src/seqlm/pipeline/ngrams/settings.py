"""Settings of the ``ngrams`` stages."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from seqlm.core.settings import Section
from seqlm.ngrams.settings import Epsilon
from seqlm.vocab.settings import Order, Orders


class LaplaceParams(Section):
    """Laplace smoothing (8.3.5)."""

    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=100)] | Literal["auto"]
    """e_1, e_2, ...: one for each order that is smoothed; ``auto`` chooses them on val."""
    max_order: Order
    """Highest order of the Laplace models."""


class NgramsParams(Section):
    """What is counted and how it is smoothed."""

    max_order: Orders
    """Highest order that is counted, for each kind of token."""
    laplace: LaplaceParams
    memory: Literal["auto"] | Annotated[int, Field(ge=2**29, le=2**50)]
    """Bytes that counting may take, ``auto``: half of this machine's memory. DuckDB counts a text
    that needs more."""

    @model_validator(mode="after")
    def _orders_fit(self) -> "NgramsParams":
        if self.laplace.max_order > min(self.max_order.values()):
            raise ValueError("laplace.max_order must not exceed max_order of any kind of token")
        if self.laplace.epsilons != "auto" and len(self.laplace.epsilons) != self.laplace.max_order:
            raise ValueError(
                "laplace.epsilons must hold one value for each order up to "
                f"{self.laplace.max_order}"
            )
        return self
