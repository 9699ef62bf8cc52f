"""A passage of text with the surprisal of each of its pieces under several models."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.vocab.kinds.kind import TokenKind


def passage(kind: TokenKind, tokens: Sequence[str], nats: Nats, num_chars: int) -> dict[str, Any]:
    """Return the first tokens of a text and their surprisals in bits, rounded to tenths.

    ``nats`` belongs to tokens 2..N; the first token has none. Infinite surprisals are null.
    Of tokens that are pieces of words the characters are shown, each with its share.
    """
    used, length = 0, 0
    while used < len(tokens) and length < num_chars:
        length += len(tokens[used]) + len(kind.joiner)
        used += 1
    shown, values = list(tokens[:used]), [math.nan, *nats[: max(used - 1, 0)].tolist()][:used]
    if kind.is_lossless and not kind.is_character:
        shown, values = spread(kind, shown, values)
    return {"tokens": shown, "joiner": kind.joiner, "bits": [_rounded(value) for value in values]}


def spread(kind: TokenKind, tokens: Sequence[str], values: Sequence[float]) -> tuple[list[str], list[float]]:
    """Return the characters of a text, and what its tokens cost spread evenly over theirs.

    What the bytes of one character cost is summed up.
    """
    characters, shares = list(kind.join(tokens)), []
    for token, value in zip(tokens, values, strict=True):
        begun = kind.length(token)
        if begun:
            shares += [value / begun] * begun
        elif shares:
            shares[-1] += value
    return characters, [*shares, *[0.0] * len(characters)][: len(characters)]


def _rounded(value: float) -> float | None:
    return round(float(value) / math.log(2), 1) if np.isfinite(value) else None
