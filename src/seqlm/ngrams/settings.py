"""Settings of n-gram models."""

from typing import Annotated, Literal

from pydantic import Field

from seqlm.core.settings import Section

Unknown = Literal["good_turing", "uniform"]
"""How likely ``<unk>`` is in Kneser-Ney models: ``good_turing``: as all tokens together that train
has once (Good 1953); ``uniform``: as any token that train lacks, which is KenLM's way."""
Epsilon = Annotated[float, Field(strict=True, ge=0, le=1e12)]


class LaplaceSettings(Section):
    """What is stored of the Laplace models of a text."""

    epsilons: Annotated[list[Epsilon], Field(min_length=1)]
    chosen_on_val: bool


class KneserNeySettings(Section):
    """What is stored of the Kneser-Ney models of a text."""

    unknown: Unknown
