"""One passage of text under several models, for the surprisal views of the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqlm.pipeline.score.excerpts import INFINITE

Cost = float | str | None
"""Bits, :data:`seqlm.pipeline.score.excerpts.INFINITE`, or None if not scored."""
Costs = Sequence[Cost | list[Any]]
"""Costs of a text in order: of one character, or a list of the length and bits of a token."""
_BITS_PER_SHADE, _DARKEST = 1.2, 9


def align(passages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A passage and the costs of its characters under each model.

    ``passages``: model -> :func:`seqlm.pipeline.score.excerpts.passage` of the same text. The
    keys are ``text`` and ``models``: model -> :data:`Costs`. Blanks between the words of a model
    have no cost.
    """
    if not passages:
        return {"text": "", "models": {}}
    finest = min(passages.values(), key=lambda passage: len(passage["separator"]))
    text = finest["separator"].join(finest["tokens"])
    costs = {model: _costs(text, passage) for model, passage in passages.items()}
    return {"text": text, "models": costs}


def _costs(text: str, passage: Mapping[str, Any]) -> list[Cost | list[Any]]:
    costs: list[Cost | list[Any]] = []
    start = 0
    for token, bits in zip(passage["tokens"], passage["bits"], strict=True):
        while passage["separator"] and text[start : start + 1] in (" ", "\n"):
            costs.append(None)
            start += 1
        length = min(len(token), len(text) - start)
        if length < 1:
            break
        costs.append(bits if length == 1 else [length, bits])
        start += length
    return [*costs, *[None] * (len(text) - start)]


def bits_by_character(costs: Costs) -> list[float | None]:
    """Bits of each character, None if not scored; those of a token are divided evenly."""
    bits: list[float | None] = []
    for cost in costs:
        length, total = cost if isinstance(cost, list) else (1, cost)
        if total is None:
            bits += [None] * length
        else:
            bits += [float("inf" if total == INFINITE else total) / length] * length
    return bits


def shaded_line(text: str, costs: Costs, num_chars: int) -> tuple[list[tuple[str, str]], float]:
    """The first words of a text as pairs of a character and its shade, and their mean bits."""
    end = len(text)
    if end > num_chars:
        blank = max(text.rfind(" ", 0, num_chars), text.rfind("\n", 0, num_chars))
        end = blank + 1 or num_chars
    bits = bits_by_character(costs)[:end]
    scored = [value for value in bits if value is not None]
    characters = text[:end].replace("\n", " ")
    return list(zip(characters, map(_shade, bits), strict=True)), sum(scored) / max(len(scored), 1)


def _shade(bits: float | None) -> str:
    return "" if bits is None else f"s{int(min(bits / _BITS_PER_SHADE, _DARKEST))}"
