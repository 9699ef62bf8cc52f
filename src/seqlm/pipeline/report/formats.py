"""How numbers are written on the page, in its sentences and in the summary."""

import re
from typing import Any

import pandas as pd


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table, with separators between thousands; a dash if there is none."""
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}"  # z: no "-0.00"
    return text.replace("-", "−")


def decimals(value: Any, digits: int = 2, missing: str = "") -> str:
    """A measured value, a very large one as a power of ten; ``missing`` if there is none."""
    if pd.isna(value):
        return missing
    return f"{value:.{digits}f}" if value < 1e9 else f"{value:.1e}"


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def plus_minus(value: float, margin: float, digits: int) -> str:
    """A number with half the width of its interval."""
    return f"{value:.{digits}f} ± {margin:.{digits}f}"


def half_width(row: Any) -> str:
    """Half the width of the interval in a row of the main table, "" if it has none."""
    return "" if pd.isna(row.ci_low) else f"±{(row.ci_high - row.ci_low) / 2:.2f}"


def unbroken(text: str) -> str:
    """The text with no-break spaces between numbers and their signs."""
    return type(text)(re.sub(r"(?<=\d) (?=[%±×])|(?<=[±×]) ", "\N{NO-BREAK SPACE}", text))


def sentence_case(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
