"""Networks: as they were trained, and as they keep learning from the text that they have predicted.

That is dynamic evaluation (Krause et al. 2018). After each segment of text, every parameter takes a
step along its gradient divided by the root mean square of its gradients on the training text, and
is pulled back towards its trained value; parameters with large gradients are pulled more strongly.
So the influence of earlier text fades. The divisor is damped by a share of the average root mean
square: a parameter that train hardly uses, such as a row for a rare token, would otherwise take
huge steps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.threads import default_threads, raise_if_cancelled
from seqlm.models.info import ModelInfo
from seqlm.models.language_model import LanguageModel
from seqlm.models.reader import Probs, Reader
from seqlm.models.scored_text import Ids
from seqlm.networks.building import save_network
from seqlm.networks.network import (
    Logits,
    Network,
    Weights,
    nll_array,
    probabilities,
    rows_nll,
    stream_nll,
)
from seqlm.vocab.vocabulary import Vocab

_ROWS = 64
"""Texts that a network reads at the same time."""
UPDATE_EVERY = 32
"""Tokens between two updates: as many as the steps of the minibatches that the LSTM is trained
with."""
RMS_SEGMENTS = 1000
"""Segments of train whose gradients give the root mean squares: with more, these hardly change."""
DAMPING = 0.3
"""This share of the average root mean square is added to each one before dividing by it."""
SEGMENT_WARMUP = 64
"""Tokens that the network reads before a segment of train."""
NUM_PARTS = 8
"""The segments of train are summed in this many parts, whatever the number of threads, so that sums
have one order."""


class StaticNetwork(LanguageModel):
    """A network whose weights stay as they are."""

    def __init__(self, info: ModelInfo, vocab: Vocab, network: Network) -> None:
        """Make the model that ``info`` describes; ``network`` predicts the tokens of ``vocab``."""
        super().__init__(info, vocab)
        self.network = network

    def write(self, layout: Layout) -> None:
        network, name, vocab = self.network, self.name, self.vocab
        vocab.save(layout.vocab(vocab.kind))
        save_network(
            layout.run(name),
            name,
            network.settings,
            vocab.key,
            network.weight_copies(),
            asdict(self.info),
            {"device": "cpu", "num_threads": default_threads()},
        )

    def _token_nll(self, ids: Ids) -> Nll:
        return stream_nll(self.network, ids)

    def batch_nll(self, texts: Sequence[Ids]) -> list[Nll]:
        # Texts of about one length are read together.
        text_nll = [np.empty(0)] * len(texts)
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(by_length), _ROWS):
            indices = by_length[start : start + _ROWS]
            # What follows the end of a text changes nothing before it.
            rows = np.zeros((len(indices), len(texts[indices[-1]])), np.int64)
            for row, index in zip(rows, indices, strict=True):
                row[: len(texts[index])] = texts[index]
            for nll, index in zip(rows_nll(self.network, rows), indices, strict=True):
                text_nll[index] = nll[: max(len(texts[index]) - 1, 0)]
        return text_nll

    def _reader(self) -> Reader:
        return NetworkReader(self.network, self.network.initial_state(1))


class NetworkReader(Reader):
    """Reads a text with a network, from a state on."""

    def __init__(self, network: Network, state: Any) -> None:
        """Begin with a state of one row."""
        self._step = network.step_fn(state)
        self._logits: Logits | None = None

    def _read(self, token_id: int) -> None:
        self._logits = self._step(np.array([token_id], np.int64))

    def next_probs(self) -> Probs:
        if self._logits is None:
            raise ParamsError(
                "a network predicts nothing before it has read a token: call read first"
            )
        return np.asarray(probabilities(self._logits)[0])


def dynamic_update(
    lr: float, decay: float, rms: Weights, trained: Weights
) -> Callable[[Network], None]:
    """Return what changes the weights of a network by its gradients and pulls them back to the
    trained ones.

    ``rms`` are the root mean squares of gradients (:func:`gradient_rms`). ``decay`` is the share of
    the way back that a parameter of average root mean square takes at each update.
    """
    num_parameters = sum(math.prod(roots.shape) for roots in rms)
    average = sum(float(roots.sum()) for roots in rms) / num_parameters
    average = average or 1.0  # without any gradient on train, all weights are equally important
    scales = [roots + DAMPING * average for roots in rms]
    pulls = [(roots * (decay / average)).clip(max=1) for roots in rms]  # at most all of the way
    return lambda network: network.dynamic_step(lr, scales, trained, pulls)


def gradient_rms(network: Network, ids: Ids, *, segment_length: int, num_segments: int) -> Weights:
    """Return the root mean square of each parameter's gradient over evenly spaced segments of a
    stream."""
    num_starts = len(range(0, len(ids) - 1, segment_length))
    chosen = np.unique(
        np.linspace(0, num_starts - 1, min(num_segments, num_starts)).astype(np.int64)
    )
    parts = np.array_split(chosen * segment_length, NUM_PARTS)
    totals = [0 * weight for weight in network.weights]
    for part in network.imap(partial(_sums_of_squares, network, ids, segment_length), parts):
        for total, squares in zip(totals, part, strict=True):
            total += squares
    return [(total / max(len(chosen), 1)) ** 0.5 for total in totals]


def train_gradient_rms(network: Network, train: Ids) -> Weights:
    """Return the root mean squares that dynamic evaluation divides by."""
    return gradient_rms(network, train, segment_length=UPDATE_EVERY, num_segments=RMS_SEGMENTS)


def _sums_of_squares(network: Network, ids: Ids, length: int, starts: NDArray[np.int64]) -> Weights:
    """Return the sums of each parameter's squared gradients over the segments that begin at
    ``starts``."""
    observed = network.copy()
    squares = [0 * weight for weight in observed.weights]
    with observed.flush_denormals():
        for start in starts.tolist():
            raise_if_cancelled()
            state, before = observed.initial_state(1), min(start, SEGMENT_WARMUP)
            # Not all of a large text at once.
            stream = np.asarray(ids[start - before : start + length + 1], np.int64)
            if before > 0:
                state = observed.advance_state(stream[None, :before], state)
            observed.compute_gradients(*_segment(stream, before, length), state)
            for square, gradient in zip(squares, observed.gradients, strict=True):
                square += gradient * gradient
    return squares


def dynamic_nll(
    network: Network, ids: Ids, update: Callable[[Network], None], *, update_every: int
) -> Nll:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, with an update after every
    ``update_every``.

    Each segment is scored before the network learns from it; ``update`` gets the network with its
    gradients. ``network`` itself is not changed.
    """
    adapted, stream, segments = network.copy(), np.asarray(ids, np.int64), []
    state = adapted.initial_state(1)
    with adapted.flush_denormals():
        for start in range(0, len(stream) - 1, update_every):
            raise_if_cancelled()
            inputs, targets = _segment(stream, start, update_every)
            nll, state = adapted.compute_gradients(inputs, targets, state)
            segments.append(nll_array(nll)[0])
            update(adapted)
    return np.concatenate(segments) if segments else np.empty(0)


def _segment(
    stream: NDArray[np.int64], start: int, length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return inputs and targets of the segment that begins at ``start``, each ``(1, T)``."""
    end = min(start + length, len(stream) - 1)
    return stream[None, start:end], stream[None, start + 1 : end + 1]


class DynamicNetwork(LanguageModel):
    """A network that keeps learning from the text that it reads."""

    def __init__(
        self, static: StaticNetwork, lr: float, decay: float, rms: Callable[[], Weights]
    ) -> None:
        """Begin with a static network. ``lr`` and ``decay`` are those of :func:`dynamic_update`;
        ``rms`` returns :func:`train_gradient_rms`."""
        super().__init__(static.info.as_dynamic(), static.vocab)
        self._network, self.lr, self.decay, self._rms = static.network, lr, decay, rms

    @cached_property
    def _update(self) -> Callable[[Network], None]:
        return dynamic_update(self.lr, self.decay, self._rms(), self._network.copy().weights)

    def _token_nll(self, ids: Ids) -> Nll:
        return dynamic_nll(self._network, ids, self._update, update_every=UPDATE_EVERY)

    def _reader(self) -> Reader:
        return _LearningReader(self._network, self._update)


class _LearningReader(NetworkReader):
    def __init__(self, network: Network, update: Callable[[Network], None]) -> None:
        self._network, self._update = network.copy(), update
        self._state = self._network.initial_state(1)
        self._segment: list[int] = []
        """The last token of the segment before, and the tokens read since."""
        super().__init__(self._network, self._state)

    def _read(self, token_id: int) -> None:
        self._segment.append(token_id)
        if len(self._segment) > UPDATE_EVERY:
            stream = np.array([self._segment])
            _, self._state = self._network.compute_gradients(
                stream[:, :-1], stream[:, 1:], self._state
            )
            self._update(self._network)
            self._segment, self._step = [token_id], self._network.step_fn(self._state)
        super()._read(token_id)
