"""Generation of text: tokens drawn one after another from a model's distributions."""

from typing import Annotated

import numpy as np
from pydantic import Field

from seqlm.core.elementary import exp, log
from seqlm.core.errors import DataError
from seqlm.core.settings import Section, Seed, check, plain_number
from seqlm.models.reader import Probs, Reader

AtLeastOne = Annotated[int, Field(ge=1)]
_MIN_TEMPERATURE = float(np.finfo(np.float64).tiny)


class SamplingSettings(Section):
    """How tokens are drawn."""

    num_preds: AtLeastOne
    """Tokens to draw."""
    temperature: Annotated[float, Field(ge=0)]
    """With 0 each token is the most likely one; otherwise it is drawn from q proportional to p to
    the power 1 / temperature (exercise 8.5-3 with alpha = 1 / temperature)."""
    top_k: AtLeastOne | None
    """Keeps the k most likely tokens."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None
    """Keeps the smallest set of most likely tokens that has this much probability (nucleus)."""
    seed: Seed

    @classmethod
    def checked(cls, **arguments: object) -> "SamplingSettings":
        """Return the arguments of ``generate`` as settings. Raises ParamsError for a wrong one."""
        values = {name: plain_number(value) for name, value in arguments.items()}
        return check(values, "", cls, source="generate")


def generate_ids(
    reader: Reader, probs: Probs, settings: SamplingSettings, rng: np.random.Generator
) -> list[int]:
    """Return the ids of the tokens that are drawn after a prefix, which the reader has read; the
    first one is drawn from ``probs``."""
    generated = [sample_token(probs, settings, rng)]
    while len(generated) < settings.num_preds:
        reader.read(generated[-1])
        generated.append(sample_token(reader.next_probs(), settings, rng))
    return generated


def sample_token(probs: Probs, settings: SamplingSettings, rng: np.random.Generator) -> int:
    """Return the id of one token, given the probability of each, shape ``(V,)``.

    ``<unk>``, token 0, is never chosen, because it is not text. Raises DataError if only it can
    follow.
    """
    allowed = probs[1:]
    if not allowed.any():
        raise DataError("no token of the vocabulary can follow: pass another prefix")
    if settings.temperature == 0:
        return int(allowed.argmax()) + 1
    logs = log(allowed)
    # Relative to the largest, so that no temperature, however low, makes a number too large.
    with np.errstate(over="ignore"):
        weights = exp((logs - logs.max()) / max(settings.temperature, _MIN_TEMPERATURE))
    top_k = settings.top_k or len(weights)
    if top_k < len(weights):
        weights[weights < np.partition(weights, -top_k)[-top_k]] = 0
    if settings.top_p is not None:
        order = np.argsort(-weights, kind="stable")
        sorted_weights = weights[order]
        # A token stays while those before it have less than top_p: the first one always does.
        weight_before = np.cumsum(sorted_weights) - sorted_weights
        sorted_weights[weight_before >= settings.top_p * sorted_weights.sum()] = 0
        weights[order] = sorted_weights
    cumulative = np.cumsum(weights)
    threshold = min(rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return int((cumulative > threshold).argmax()) + 1
