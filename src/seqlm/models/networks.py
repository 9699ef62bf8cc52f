"""Networks whose weights stay as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.settings import Device
from seqlm.models.info import ModelInfo, describe_run
from seqlm.models.language_model import LanguageModel, Reader
from seqlm.models.sampling import Probs
from seqlm.models.scored_text import Ids
from seqlm.networks.building import open_network
from seqlm.networks.network import Logits, Network, probabilities, rows_nll, stream_nll
from seqlm.train.settings import read_config
from seqlm.vocab.vocabulary import Vocab

_ROWS = 64
"""Texts that a network reads at the same time."""
_TOKENS = 1 << 14
"""Tokens of all of them together that it reads at once."""


class StaticNetwork(LanguageModel):
    """A network whose weights stay as they are."""

    def __init__(self, info: ModelInfo, vocab: Vocab, network: Network) -> None:
        """Take a network over the tokens of a vocabulary."""
        super().__init__(info, vocab)
        self.network = network

    def _token_nll(self, ids: Ids) -> Nll:
        return stream_nll(self.network, ids)

    def texts_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        """Return -log p of tokens 2 to N of each text; texts of about one length are read together."""
        found = [np.empty(0)] * len(texts)
        by_length = sorted(
            (index for index, ids in enumerate(texts) if len(ids) > 1), key=lambda index: len(texts[index])
        )
        for start in range(0, len(by_length), _ROWS):
            indices = by_length[start : start + _ROWS]
            # What follows the end of a text changes nothing before it.
            rows = np.zeros((len(indices), len(texts[indices[-1]])), np.int64)
            for row, index in zip(rows, indices, strict=True):
                row[: len(texts[index])] = texts[index]
            for nll, index in zip(rows_nll(self.network, rows, _TOKENS // len(rows)), indices, strict=True):
                found[index] = nll[: len(texts[index]) - 1]
        return found

    def reader(self) -> Reader:
        """Return a reader of a new text."""
        return NetworkReader(self.network, self.network.initial_state(1))


class NetworkReader(Reader):
    """Reads a text with a network, from a state on."""

    def __init__(self, network: Network, state: Any) -> None:
        """Begin with a state of one row."""
        self._step = network.step_fn(state)
        self._logits: Logits | None = None

    def read(self, token: int) -> None:
        """Read the next token."""
        self._logits = self._step(np.array([token], np.int64))

    def next_probs(self) -> Probs:
        """Return p of every token. Raises ParamsError before the first token."""
        if self._logits is None:
            raise ParamsError("a network predicts nothing before it has read a token: call read first")
        return np.asarray(probabilities(self._logits)[0])


def open_run(layout: Layout, run: str, device: Device | None = None, num_threads: int | None = None) -> StaticNetwork:
    """Return the network of a run, on the device and with the threads of its own settings, unless others are given."""
    config = read_config(layout.config(run))
    vocab = Vocab.load(layout.vocab(config.token), config.token)
    network = open_network(layout.run(run), run, vocab.key, device or config.device, num_threads or config.num_threads)
    return StaticNetwork(describe_run(config, vocab), vocab, network)
