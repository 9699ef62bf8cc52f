"""How numbers are written on the page and in its sentences."""

import re

NO_VALUE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table, with separators between thousands; a dash if there is none."""
    if value is None:
        return NO_VALUE
    text = f"{value:,}" if isinstance(value, int) else f"{value:z,.{digits}f}"  # z: no "-0.00"
    return text.replace("-", "−")


def number_or_infinite(value: float | None, digits: int) -> str:
    """A number in a report, which stores infinity as None."""
    return "infinite" if value is None else f"{value:,.{digits}f}"


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def plus_minus(value: float, margin: float, digits: int) -> str:
    """A number with half the width of its interval."""
    return f"{value:.{digits}f} ± {margin:.{digits}f}"


def unbroken(text: str) -> str:
    """The text with no-break spaces between numbers and their signs."""
    return re.sub(r"(?<=\d) (?=[%±×])|(?<=[±×]) ", "\N{NO-BREAK SPACE}", text)
