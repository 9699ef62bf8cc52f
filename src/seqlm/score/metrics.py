"""The figures that sum up a model's surprisals."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from seqlm.core.metrics import Nll, bits_per_character, perplexity
from seqlm.heldout.scored_text import ScoredText


def summarise(nll: Nll, text: ScoredText) -> dict[str, Any]:
    """Return nats per token, perplexity, bits per character, number of tokens, and shares of a scored text.

    Perplexity is per token of the model's own kind. Bits per character add the cost of spelling unknown tokens and
    divide by the scored characters. ``unknown_bits`` are those spent on unknown tokens: on predicting that one comes,
    and on spelling it. ``separator_bits``, which are not included, are what the separators between words would cost a
    model over words. Infinite values are None, with a reason. Raises DataError if the surprisals belong to another
    text.
    """
    with_spelling, chars = text.with_unknown_cost(nll), max(text.scored_chars, 1)
    total, total_with_spelling = float(nll.sum()), float(with_spelling.sum())
    per_token = total / max(len(nll), 1)
    values = {
        "nats_per_token": per_token,
        "perplexity": perplexity(total, max(len(nll), 1)),
        "bits_per_character": bits_per_character(total_with_spelling, chars),
        "unknown_bits": bits_per_character(float(with_spelling[text.unknown_costs[1:] > 0].sum()), chars),
    }
    found: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in values.items()}
    if None in found.values():
        impossible, invalid = int(np.isinf(nll).sum()), int(np.isnan(nll).sum())
        found["reason"] = f"{impossible} tokens have probability 0, {invalid} none; {per_token:.0f} nats per token"
    return found | {
        "separator_bits": bits_per_character(text.separator_nll, chars),
        "tokens": len(nll),
        "unknown_share": text.unknown_share,
        "scored_share": text.share,
    }


def total_nll(nll: Nll) -> float:
    """Return the sum of surprisals as a number to compare: infinity if one of them is not a number."""
    total = float(nll.sum())
    return math.inf if math.isnan(total) else total


def shown_bits(metrics: Mapping[str, Any]) -> str:
    """Return bits per character for a terminal."""
    bits = metrics["bits_per_character"]
    return "infinite bits per character" if bits is None else f"{bits:.3f} bits per character"


def finite_bits(metrics: Mapping[str, Any]) -> float:
    """Return bits per character as a number to compare: infinity if the model gives a token no probability."""
    bits = metrics["bits_per_character"]
    return math.inf if bits is None else float(bits)


def headline(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures that experiments are compared by: bits per character on val and test."""
    return {f"{split}_bits": metrics[split]["bits_per_character"] for split in ("val", "test")}
