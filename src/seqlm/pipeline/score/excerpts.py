"""Excerpts of texts that pages show, with the surprisal of each token."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlm.core.metrics import Nll
from seqlm.models.surprisals import TextSurprisals
from seqlm.models.user_text import MAX_SHOWN_CHARS
from seqlm.vocab.kinds import TokenKind

INFINITE = "infinite"


def page_content(found: TextSurprisals) -> dict[str, Any]:
    """Return what the page shows of a model: its metrics, and the beginning of the text with
    surprisals."""
    encoded, nll = found.encoded, found.nll + found.encoded.spelling
    has_no_first = int(np.isnan(nll[:1]).sum())
    shown = passage(encoded.vocab.token_kind, encoded.tokens, nll[has_no_first:], MAX_SHOWN_CHARS)
    return {"passage": shown} | found.metrics


def passage(kind: TokenKind, tokens: Sequence[str], nll: Nll, num_chars: int) -> dict[str, Any]:
    """Return the first tokens of a text and their surprisals in bits, rounded to tenths.

    ``nll`` belong to the last tokens: one before them, usually the first, is not scored, and its
    surprisal is null. The surprisal of a token without a probability is :data:`INFINITE`. Subwords
    are shown as characters, each with its share of the surprisal.
    """
    used, length = 0, 0
    while used < len(tokens) and length < num_chars:
        length += kind.length(tokens[used]) + len(kind.separator)
        used += 1
    finite_or_infinite = np.nan_to_num(nll[:used], nan=math.inf, posinf=math.inf)
    not_scored = [math.nan] * (len(tokens) - len(nll))
    shown, values = list(tokens[:used]), [*not_scored, *finite_or_infinite.tolist()][:used]
    if kind.is_lossless and not kind.is_character:
        shown, values = per_character(kind, shown, values)
    return {
        "tokens": shown,
        "separator": kind.separator,
        "bits": [_rounded(value) for value in values],
    }


def per_character(
    kind: TokenKind, tokens: Sequence[str], values: Sequence[float]
) -> tuple[list[str], list[float]]:
    """Return the characters of a text, each with an equal share of its token's value.

    The values of the bytes of one character are summed.
    """
    characters, shares = list(kind.join(tokens)), []
    for token, value in zip(tokens, values, strict=True):
        num_chars = kind.length(token)
        if num_chars:
            shares += [value / num_chars] * num_chars
        elif shares:
            shares[-1] = (
                value if math.isnan(shares[-1]) else shares[-1] + value
            )  # the first token has no value
    return characters, [*shares, *[0.0] * len(characters)][: len(characters)]


def _rounded(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return INFINITE if math.isinf(value) else round(value / math.log(2), 1)
