"""Fonts for text in any script: those that are installed here and have its characters.

In an SVG text stays text, and a browser chooses fonts of its own; but matplotlib measures it,
and what no font has is a box in either.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from matplotlib.font_manager import FontEntry, FontProperties, findfont, findSystemFonts, fontManager, get_font

USUAL = "sans-serif"
"""The family of all figures: it comes first, and alone wherever it suffices."""
MISSING_GLYPH = "\u00b7"
"""Drawn for a character that no font has."""
_BOXES = ("lastresort", "adobeblank", "fallback")
"""Parts of names of fonts that have a box for every character."""
_USUAL_WEIGHTS = (400, "normal", "regular")


def families_for(text: str) -> list[str]:
    """Return the families that have a text's characters between them, as far as any that is installed here has them."""
    return list(_chosen(_printed(text))[0])


def without_font(text: str) -> str:
    """Return the characters of a text, each once and in order, that no font here has; spaces need none."""
    return "".join(sorted(_chosen(_printed(text))[1]))


def _printed(text: str) -> frozenset[str]:
    return frozenset(character for character in text if character.isprintable())


@cache
def _chosen(characters: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Return the families and the characters that none has."""
    families, missing = [USUAL], _lacking(findfont(FontProperties(family=[USUAL])), characters)
    candidates = _installed() if missing else {}
    while candidates and missing:
        left = {family: _lacking(path, missing) for family, path in candidates.items()}
        # The font that has most of them, the first by name where there are more such fonts.
        best = min(left, key=lambda family: (len(left[family]), family))
        if left[best] == missing:
            break
        families.append(best)
        missing = left[best]
    return families, missing


@cache
def _installed() -> dict[str, str]:
    """Return the plainest file of each family: upright and of usual weight where there is such a one."""
    # Matplotlib keeps a list from its first use: what was installed since is added to it.
    for path in sorted(set(findSystemFonts()) - {entry.fname for entry in fontManager.ttflist}):
        with suppress(Exception):  # a broken font can fail in any way, and is passed over there too
            fontManager.addfont(path)
    plainest: dict[str, FontEntry] = {}
    for entry in sorted(fontManager.ttflist, key=_plainness):
        if not any(part in entry.name.lower().replace(" ", "") for part in _BOXES):
            plainest.setdefault(entry.name, entry)
    # A family whose plainest file calls its weight another is entered by the usual one too: matplotlib would warn.
    for entry in plainest.values():
        if entry.weight not in _USUAL_WEIGHTS:
            fontManager.ttflist.append(replace(entry, weight="normal"))
    return {name: entry.fname for name, entry in plainest.items()}


def _plainness(entry: FontEntry) -> tuple[Any, ...]:
    return entry.style != "normal", entry.weight not in _USUAL_WEIGHTS, entry.fname


def _lacking(path: str, characters: Iterable[str]) -> frozenset[str]:
    """Return the characters that a font has no glyph for; all, where it cannot be drawn at any size."""
    try:
        font = get_font(path)
    except (OSError, RuntimeError):  # gone since matplotlib listed it, or broken
        return frozenset(characters)
    if not font.scalable:
        return frozenset(characters)
    return frozenset(character for character in characters if not font.get_char_index(ord(character)))
