"""Networks, static ones and ones that keep learning."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.settings import Device
from seqlm.heldout.scored_text import Ids
from seqlm.models.language_model import LanguageModel, Probs, Reader, RowReader, RowwiseReader
from seqlm.networks.building import open_network
from seqlm.networks.network import Logits, Network, probabilities, rows_nll, stream_nll
from seqlm.score.model_info import ModelInfo
from seqlm.score.networks import DynamicRule, describe_run, dynamic_nll, gradient_rms, trained_weights
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

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N."""
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

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts, which the network reads together."""
        return _NetworkReader(self.network, self.network.initial_state(num_rows))


class _NetworkReader(Reader):
    def __init__(self, network: Network, state: Any) -> None:
        self._step = network.step_fn(state)
        self._logits: Logits | None = None

    def read(self, tokens: Ids) -> None:
        self._logits = self._step(np.asarray(tokens, np.int64))

    def next_probs(self) -> Probs:
        if self._logits is None:
            raise ParamsError("a network predicts nothing before it has read a token: call read first")
        return probabilities(self._logits)


class DynamicNetwork(LanguageModel):
    """A network that keeps learning from the text that it reads (:mod:`seqlm.score.networks`)."""

    def __init__(self, static: StaticNetwork, train: Ids, scored: Mapping[str, Any]) -> None:
        """Take the static network, the tokens of train, and the metadata of the dynamic score."""
        super().__init__(static.info.as_dynamic(), static.vocab)
        self._network, self._train, self._scored = static.network, train, scored
        self._update_every: int = scored["update_every"]

    @cached_property
    def _rule(self) -> DynamicRule:
        network, chosen, num_segments = self._network, self._scored["choices"], self._scored["rms_segments"]
        rms = gradient_rms(network, self._train, segment_length=self._update_every, num_segments=num_segments)
        return DynamicRule(chosen["dynamic_lr"], chosen["dynamic_decay"], rms, trained_weights(network))

    def token_nll(self, ids: Ids) -> Nll:
        """Return -log p of tokens 2 to N, each predicted before the network learns from it."""
        return dynamic_nll(self._network, ids, update_every=self._update_every, update=self._rule.apply)

    def reader(self, num_rows: int = 1) -> Reader:
        """Return a reader of new texts; from each of them, a copy of the network learns."""
        rows = range(num_rows)
        return RowwiseReader([_LearningReader(self._network, self._rule, self._update_every) for _ in rows])


class _LearningReader(RowReader):
    def __init__(self, network: Network, rule: DynamicRule, update_every: int) -> None:
        self._network, self._rule, self._update_every = network.copy(), rule, update_every
        self._segment: list[int] = []
        """The last token of the segment before, and the tokens read since."""
        self._begin(self._network.initial_state(1))

    def _begin(self, state: Any) -> None:
        self._state, self._reader = state, _NetworkReader(self._network, state)

    def read(self, token: int) -> None:
        self._segment.append(token)
        if len(self._segment) > self._update_every:
            stream = np.array([self._segment])
            _, state = self._network.compute_gradients(stream[:, :-1], stream[:, 1:], self._state)
            self._rule.apply(self._network)
            self._segment = [token]
            self._begin(state)
        self._reader.read(np.array([token]))

    def next_probs(self) -> Probs:
        return np.asarray(self._reader.next_probs()[0])


def open_run(
    layout: Layout, run: str, device: Device, num_threads: int | None = None, *, is_best: bool = False
) -> StaticNetwork:
    """Return the network of a run, or that of its best epoch.

    Without a number of threads it has that of its own settings.
    """
    config = read_config(layout.config(run))
    vocab = Vocab.load(layout.vocab(config.token), config.token)
    folder = layout.best_of_run(run) if is_best else layout.run(run)
    network = open_network(folder, run, vocab.key, device, num_threads or config.num_threads)
    return StaticNetwork(describe_run(config, vocab, is_best=is_best), vocab, network)
