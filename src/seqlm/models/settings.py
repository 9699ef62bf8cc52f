"""What a caller chooses of a table of surprisals."""

from typing import Literal, get_args

By = Literal["token", "word"]
"""The unit of a row."""
Space = Literal["before", "after"]
"""Where a blank belongs that is between two words: to the one that it precedes, or to the one that it follows."""
UNITS: tuple[By, ...] = get_args(By)
SPACES: tuple[Space, ...] = get_args(Space)
