"""The interface of what reads a text token by token."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import ParamsError

Probs = NDArray[np.float64]


class TokenIdError(ParamsError, ValueError):
    """An id that the vocabulary does not have."""


class Reader(ABC):
    """Reads a text, token by token."""

    vocab_size: int
    """The number of tokens."""

    def read(self, token_id: int) -> None:
        """Read the next token, an id of the vocabulary. Raises TokenIdError, which is a ParamsError
        and a ValueError, for another value."""
        if not isinstance(token_id, int | np.integer) or not 0 <= token_id < self.vocab_size:
            ids = f"an integer from 0 to {self.vocab_size - 1:,}"
            raise TokenIdError(f"read: token_id = {token_id!r}: must be {ids}")
        self._read(token_id)

    @abstractmethod
    def _read(self, token_id: int) -> None:
        """Read the next token, whose id was checked."""

    @abstractmethod
    def next_probs(self) -> Probs:
        """Return p of every token after what was read, shape ``(V,)``.

        Raises ParamsError before the first token if the model has no such distribution.
        """
