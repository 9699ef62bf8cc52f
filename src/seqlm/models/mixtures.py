"""Mixtures of models, as the ``evaluate`` stage stores them."""

from collections.abc import Sequence

import numpy as np

from seqlm.core.metrics import Nats
from seqlm.evaluate.mixtures import Weights, mix
from seqlm.heldout.scored_text import Ids
from seqlm.models.language_model import LanguageModel, Probs, Reader
from seqlm.score.model_info import ModelInfo


class Mixture(LanguageModel):
    """A linear mixture: p is the weighted mean of the members' p."""

    def __init__(self, info: ModelInfo, members: Sequence[LanguageModel], weights: Sequence[float]) -> None:
        """Take models over the same tokens, and their weights."""
        super().__init__(info, members[0].vocab, members[0].clean)
        self.members, self.weights = list(members), np.array(weights)

    def token_nll(self, ids: Ids) -> Nats:
        """Return -log p of tokens 2 to N."""
        return mix([member.token_nll(ids) for member in self.members], self.weights)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts. Members that are dynamic learn from what it reads."""
        return _MixtureReader([member.reader(num_rows) for member in self.members], self.weights)


class _MixtureReader(Reader):
    def __init__(self, readers: Sequence[Reader], weights: Weights) -> None:
        self._readers, self._weights = readers, weights

    def read(self, tokens: Ids) -> None:
        for reader in self._readers:
            reader.read(tokens)

    def next_probs(self) -> Probs:
        found: Probs = np.tensordot(self._weights, np.stack([reader.next_probs() for reader in self._readers]), 1)
        return found
