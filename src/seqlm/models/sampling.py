"""How the next token of a generated text is chosen."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.elementary import exp, log
from seqlm.core.settings import check_argument

Probs = NDArray[np.float64]
_COLDEST = float(np.finfo(np.float64).tiny)
_SAMPLING: dict[str, Any] = {
    "temperature": Annotated[float, Field(ge=0)],
    "top_k": Annotated[int, Field(ge=1)] | None,
    "top_p": Annotated[float, Field(gt=0, le=1)] | None,
}


@dataclass(frozen=True)
class SamplingConfig:
    """How a token is chosen.

    With ``temperature`` 0 it is the most likely one; otherwise it is drawn from q proportional to p to the power
    1 / temperature (exercise 8.5-3 with alpha = 1 / temperature). ``top_k`` keeps the k most likely tokens; ``top_p``
    keeps the smallest set of most likely tokens that has this much probability (nucleus).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        """Raise ParamsError for settings that choose no token."""
        for name, kind in _SAMPLING.items():
            object.__setattr__(self, name, check_argument(getattr(self, name), name, kind, function="generate"))

    def pick(self, probs: Probs, rng: np.random.Generator) -> int:
        """Return one token, given the probability of each, shape ``(V,)``.

        ``<unk>``, token 0, is never chosen, because it is no text.
        """
        allowed = probs[1:]
        if self.temperature == 0:
            return int(allowed.argmax()) + 1
        logs = log(allowed)
        # Relative to the largest, so that no temperature, however low, makes a number too large.
        with np.errstate(over="ignore"):
            weights = exp((logs - logs.max()) / max(self.temperature, _COLDEST))
        if self.top_k is not None and self.top_k < len(weights):
            weights[weights < np.partition(weights, -self.top_k)[-self.top_k]] = 0
        if self.top_p is not None:
            order = np.argsort(-weights, kind="stable")
            ordered = weights[order]
            # A token stays while those before it have less than top_p: the first one always does.
            ordered[np.cumsum(ordered) - ordered >= self.top_p * ordered.sum()] = 0
            weights[order] = ordered
        cumulative = np.cumsum(weights)
        drawn = min(rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0))
        return int((cumulative > drawn).argmax()) + 1
