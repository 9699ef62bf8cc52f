"""Cells of tables."""

import math

import numpy as np


def is_missing(value: object) -> bool:
    """Return whether a value is what pandas has in an empty cell."""
    is_nan = isinstance(value, (float, np.floating)) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")
