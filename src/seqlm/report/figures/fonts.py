"""Fonts for text in any script, chosen from the fonts that are installed.

In an SVG file, text stays text and a browser chooses its own fonts. But matplotlib measures text with the fonts chosen
here, and shows a character that no font has as a box.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from matplotlib.font_manager import FontEntry, FontProperties, findfont, findSystemFonts, fontManager, get_font

USUAL = "sans-serif"
"""The family of all figures: it comes first, and alone if it has all characters."""
MISSING_GLYPH = "\u00b7"
"""Drawn for a character that no font has."""
_PLACEHOLDER_FONTS = ("lastresort", "adobeblank", "fallback")
"""Parts of the names of fonts that show a box for every character."""
_USUAL_WEIGHTS = (400, "normal", "regular")


class InstalledFonts:
    """The installed fonts, and which of them have the characters of a text."""

    def __init__(self, find_fonts: Callable[[], Iterable[str]] = findSystemFonts) -> None:
        """Remember how to find font files; nothing is searched before a text needs it."""
        self._find_fonts = find_fonts
        self._chosen: dict[frozenset[str], tuple[list[str], frozenset[str]]] = {}

    def choose(self, text: str) -> tuple[list[str], frozenset[str]]:
        """Return the families that together have the characters of a text, and the characters that no font has."""
        characters = frozenset(character for character in text if character.isprintable())
        if characters not in self._chosen:
            self._chosen[characters] = self._choose(characters)
        return self._chosen[characters]

    def _choose(self, characters: frozenset[str]) -> tuple[list[str], frozenset[str]]:
        families, missing = [USUAL], _missing(findfont(FontProperties(family=[USUAL])), characters)
        candidates = self._paths if missing else {}
        while candidates and missing:
            left = {family: _missing(path, missing) for family, path in candidates.items()}
            # The font that has most of them; of several such fonts, the first by name.
            best = min(left, key=lambda family: (len(left[family]), family))
            if left[best] == missing:
                break
            families.append(best)
            missing = left[best]
        return families, missing

    @cached_property
    def _paths(self) -> dict[str, str]:
        """The plainest file of each family: upright and of usual weight, if there is one."""
        # Matplotlib keeps a list of fonts from its first use: add the fonts that were installed since then.
        for path in sorted(set(self._find_fonts()) - {entry.fname for entry in fontManager.ttflist}):
            with suppress(Exception):  # a broken font can fail in any way; matplotlib skips it too
                fontManager.addfont(path)
        plainest: dict[str, FontEntry] = {}
        for entry in sorted(fontManager.ttflist, key=_plainness):
            if not any(part in entry.name.lower().replace(" ", "") for part in _PLACEHOLDER_FONTS):
                plainest.setdefault(entry.name, entry)
        # Matplotlib warns about a family without the usual weight, so add its plainest file under that weight too.
        for entry in plainest.values():
            if entry.weight not in _USUAL_WEIGHTS:
                fontManager.ttflist.append(replace(entry, weight="normal"))
        return {name: entry.fname for name, entry in plainest.items()}


FONTS = InstalledFonts()


def families_for(text: str) -> list[str]:
    """Return the families that together have the characters of a text, as far as any installed font has them."""
    return list(FONTS.choose(text)[0])


def without_font(text: str) -> str:
    """Return the characters of a text that no installed font has, each once and sorted."""
    return "".join(sorted(FONTS.choose(text)[1]))


def _plainness(entry: FontEntry) -> tuple[Any, ...]:
    return entry.style != "normal", entry.weight not in _USUAL_WEIGHTS, entry.fname


def _missing(path: str, characters: Iterable[str]) -> frozenset[str]:
    """Return the characters that a font has no glyph for; all, if it cannot be drawn at any size."""
    try:
        font = get_font(path)
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or broken
        return frozenset(characters)
    if not font.scalable:
        return frozenset(characters)
    return frozenset(character for character in characters if not font.get_char_index(ord(character)))
