"""One passage of text under several models, for the surprisal views of the page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seqlm.pipeline.score.shown_text import INFINITE

Cost = float | str | None
"""Bits; :data:`seqlm.pipeline.score.shown_text.INFINITE`, or None if it is not scored."""
Costs = Sequence[Cost | list[Any]]
"""Of a text in order: the cost of one character, or of a longer token a list of its length and its
bits."""
_BITS_PER_SHADE, _DARKEST = 1.2, 9


def align(passages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a passage and what its characters cost under each model.

    ``passages``: model -> :func:`seqlm.pipeline.score.shown_text.passage` of the same text. The
    keys are ``text`` and
    ``models``: model -> :data:`Costs`. Where a model has words without the blanks between them,
    these have no cost.
    """
    if not passages:
        return {"text": "", "models": {}}
    shown = min(passages.values(), key=lambda passage: len(passage["separator"]))
    text = shown["separator"].join(shown["tokens"])
    return {
        "text": text,
        "models": {name: _costs(text, passage) for name, passage in passages.items()},
    }


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


def shares(costs: Costs) -> list[float | None]:
    """Return the bits of each character, None if it is not scored; a token's are divided evenly."""
    found: list[float | None] = []
    for cost in costs:
        length, bits = cost if isinstance(cost, list) else (1, cost)
        found += [
            None if bits is None else (math.inf if bits == INFINITE else float(bits)) / length
        ] * length
    return found


def shaded_line(text: str, costs: Costs, num_chars: int) -> tuple[list[tuple[str, str]], float]:
    """Return the first characters of a text, each with the name of its shade, and the mean bits of
    those scored.

    The line ends with the last word that fits.
    """
    end = num_chars if len(text) > num_chars else len(text)
    end = (
        end
        if end == len(text)
        else max(text.rfind(" ", 0, end), text.rfind("\n", 0, end)) + 1 or end
    )
    bits = shares(costs)[:end]
    shades = [
        "" if value is None else f"s{int(min(value / _BITS_PER_SHADE, _DARKEST))}" for value in bits
    ]
    scored = [value for value in bits if value is not None]
    return list(zip(text[:end].replace("\n", " "), shades, strict=True)), sum(scored) / max(
        len(scored), 1
    )
