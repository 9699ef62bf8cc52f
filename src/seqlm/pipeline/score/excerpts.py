"""Excerpts of texts that pages show, with the surprisal of each token."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlm.core.metrics import Nll
from seqlm.models.scored_text import measure
from seqlm.models.surprisals import TextSurprisals
from seqlm.vocab.kinds import TokenKind

MAX_SHOWN_CHARS = 20_000
"""Characters of a user's own text that its page shows, so that it stays small."""
INFINITE = "infinite"
"""What stands for infinity in passages and in tables that people read; in other files it is a
missing value."""


def page_content(surprisals: TextSurprisals) -> dict[str, Any]:
    """Return what the page shows of a model: its metrics, and the beginning of the text with
    surprisals."""
    encoded, nll = surprisals.encoded, surprisals.nll + surprisals.encoded.spelling
    nll = nll[surprisals.first_is_unscored :]
    kind, tokens = encoded.vocab.token_kind, encoded.tokens
    return {"passage": passage(kind, tokens, nll, MAX_SHOWN_CHARS)} | measure(*surprisals.scored)


def passage(kind: TokenKind, tokens: Sequence[str], nll: Nll, num_chars: int) -> dict[str, Any]:
    """Return the first tokens of a text and their surprisals in bits, rounded to tenths.

    ``nll`` may be one shorter than ``tokens``: the first is then unscored, and its surprisal is
    null. The surprisal of a token without a probability is :data:`INFINITE`. Subwords are shown as
    characters, each with its share of the surprisal.
    """
    length, num_tokens = 0, 0
    while num_tokens < len(tokens) and length < num_chars:
        length += kind.length(tokens[num_tokens]) + len(kind.separator)
        num_tokens += 1
    scored = np.nan_to_num(nll[:num_tokens], nan=math.inf, posinf=math.inf)
    unscored = [math.nan] * (len(tokens) - len(nll))
    texts, values = list(tokens[:num_tokens]), [*unscored, *scored.tolist()][:num_tokens]
    if kind.is_lossless and not kind.is_character:
        texts, values = per_character(kind, texts, values)
    bits = [_rounded_bits(value) for value in values]
    return {"tokens": texts, "separator": kind.separator, "bits": bits}


def per_character(
    kind: TokenKind, tokens: Sequence[str], values: Sequence[float]
) -> tuple[list[str], list[float]]:
    """Return the characters of a text, each with an equal share of its token's value.

    The values of the bytes of one character are summed.
    """
    characters, shares = list(kind.join(tokens)), list[float]()
    for token, value in zip(tokens, values, strict=True):
        num_chars = kind.length(token)
        if num_chars:
            shares += [value / num_chars] * num_chars
        elif shares and math.isnan(shares[-1]):  # the first token has no value
            shares[-1] = value
        elif shares:
            shares[-1] += value
    return characters, [*shares, *[0.0] * len(characters)][: len(characters)]


def _rounded_bits(nats: float) -> float | str | None:
    if math.isnan(nats):
        return None
    return INFINITE if math.isinf(nats) else round(nats / math.log(2), 1)
