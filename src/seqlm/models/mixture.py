"""Linear mixtures of models."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp, log
from seqlm.core.metrics import Nll
from seqlm.models.info import mixture_info
from seqlm.models.language_model import LanguageModel
from seqlm.models.reader import Probs, Reader
from seqlm.models.scored_text import Ids


def mix(nll: Sequence[Nll], weights: NDArray[np.float64]) -> Nll:
    """Return the surprisals of the mixture of models whose surprisals are ``nll``; the weights sum
    to 1."""
    probs = np.zeros(len(nll[0]))
    for weight, member_nll in zip(weights, nll, strict=True):
        probs += weight * exp(-member_nll)
    return -log(probs)


class Mixture(LanguageModel):
    """A linear mixture: p is the weighted mean of the members' p."""

    def __init__(self, members: Sequence[LanguageModel], weights: Sequence[float]) -> None:
        """Mix models over the same tokens; the weights sum to 1."""
        super().__init__(mixture_info([member.info for member in members]), members[0].vocab)
        self.members, self.weights = list(members), np.array(weights)

    def _token_nll(self, ids: Ids) -> Nll:
        return mix([member.token_nll(ids) for member in self.members], self.weights)

    def batch_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        members = [member.batch_nll(texts) for member in self.members]
        return [mix(nll, self.weights) for nll in zip(*members, strict=True)]

    def _reader(self) -> Reader:
        return _MixtureReader([member.reader() for member in self.members], self.weights)


class _MixtureReader(Reader):
    def __init__(self, readers: Sequence[Reader], weights: NDArray[np.float64]) -> None:
        self._readers, self._weights = readers, weights

    def _read(self, token_id: int) -> None:
        for reader in self._readers:
            reader.read(token_id)

    def next_probs(self) -> Probs:
        # Added up in this order: the order of a product by NumPy depends on the processor.
        probs = (
            weight * reader.next_probs()
            for weight, reader in zip(self._weights, self._readers, strict=True)
        )
        return reduce(np.add, probs)
