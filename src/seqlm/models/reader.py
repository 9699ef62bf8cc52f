"""The interface of what reads a text token by token."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Probs = NDArray[np.float64]


class Reader(ABC):
    """Reads a text, token by token."""

    @abstractmethod
    def read(self, token_id: int) -> None:
        """Read the next token, an id of the vocabulary, which is not checked."""

    @abstractmethod
    def next_probs(self) -> Probs:
        """Return p of every token after what was read, shape ``(V,)``.

        Raises ParamsError before the first token if the model has no such distribution.
        """
