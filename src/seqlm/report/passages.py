"""One passage of text under several models, for the surprisal view of the page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seqlm.score.passage import INFINITE

Cost = float | str | None
"""Bits; :data:`seqlm.score.passage.INFINITE`, or None if it is not scored."""


def align(passages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a passage and what its characters cost under each model.

    ``passages``: model -> :func:`seqlm.score.passage.passage` of the same text. The keys are ``text``,
    ``glued``, its first two words without a blank between them, and ``models``: model -> costs of the text in order.
    The cost of one character is a number, that of a longer token a list: its length in characters, and its bits. Models
    over words have no cost for the blanks between them.
    """
    if not passages:
        return {"text": "", "glued": "", "models": {}}
    # The tokens of models over words come without the blanks between them.
    shown = min(passages.values(), key=lambda passage: len(passage["separator"]))
    text = shown["separator"].join(shown["tokens"])
    models = {name: _costs(text, passage) for name, passage in passages.items()}
    words = (models[name] for name, passage in passages.items() if passage["separator"])
    return {"text": text, "glued": _glued(text, next(words, [])), "models": models}


def _glued(text: str, costs: Sequence[Cost | list[Any]]) -> str:
    """Return the first two words that follow each other without a blank, "" if there are none."""
    start, word = 0, ""
    for cost in costs:
        end = start + (cost[0] if isinstance(cost, list) else 1)
        if text[start].isspace():
            word = ""
        elif word:
            return word + text[start:end]
        else:
            word = text[start:end]
        start = end
    return ""


def _costs(text: str, passage: Mapping[str, Any]) -> list[Cost | list[Any]]:
    costs: list[Cost | list[Any]] = []
    place = 0
    for token, bits in zip(passage["tokens"], passage["bits"], strict=True):
        while passage["separator"] and text[place : place + 1] in (" ", "\n"):
            costs.append(None)
            place += 1
        length = min(len(token), len(text) - place)
        if length < 1:
            break
        costs.append(bits if length == 1 else [length, bits])
        place += length
    return [*costs, *[None] * (len(text) - place)]


def by_mean_bits(costs: Mapping[str, Sequence[Cost | list[Any]]]) -> list[str]:
    """Return the models of a passage, those with the fewest bits per scored character first."""

    def mean(name: str) -> float:
        tokens = (cost if isinstance(cost, list) else (1, cost) for cost in costs[name])
        scored = [(length, bits) for length, bits in tokens if bits is not None]
        total = sum(math.inf if bits == INFINITE else float(bits) for _, bits in scored)
        return total / max(sum(length for length, _ in scored), 1)

    return sorted(costs, key=mean)
