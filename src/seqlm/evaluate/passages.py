"""A passage of text with the surprisal of each of its pieces under several models."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlm.core.metrics import Nats

_TENTHS = 10


def passage(tokens: Sequence[str], joiner: str, nats: Nats, num_chars: int) -> dict[str, Any]:
    """Return the first tokens of a text and their surprisals in bits, rounded to tenths.

    ``nats`` belongs to tokens 2..N; the first token has none. Infinite surprisals are null.
    """
    used, length = 0, 0
    while used < len(tokens) and length < num_chars:
        length += len(tokens[used]) + len(joiner)
        used += 1
    bits = [None, *(_rounded(value) for value in nats[: max(used - 1, 0)])]
    return {"tokens": list(tokens[:used]), "joiner": joiner, "bits": bits[:used]}


def _rounded(value: float) -> float | None:
    return round(float(value) / math.log(2), 1) if np.isfinite(value) else None
