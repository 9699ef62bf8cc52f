"""Scores a trained network, as it is and by dynamic evaluation.

In dynamic evaluation, a network keeps learning from the text that it has predicted (Krause et al. 2018). After each
segment of text, every parameter takes a step along its gradient divided by the root mean square of its gradients on the
training text, and is pulled back towards its trained value; parameters with large gradients are pulled more strongly.
So the influence of earlier text fades. The divisor is damped by a share of the average root mean square: a parameter
that train hardly uses, such as a row for a rare token, would otherwise take huge steps.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import write_metrics
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.core.progress import Log
from seqlm.core.threads import raise_if_cancelled
from seqlm.heldout.scored_text import Stream, Streams
from seqlm.heldout.store import read_beginning_of_train, read_streams
from seqlm.networks.building import open_network
from seqlm.networks.network import Ids, Network, Weights, nll_array, probabilities, rows_nll, stream_nll, tokens_at_once
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.metrics import headline, shown_bits, summarise, total_nll
from seqlm.score.model_info import ModelInfo, beginning_chars
from seqlm.score.settings import DynamicParams, ScoreParams
from seqlm.score.store import Score, if_better, make_score, save_scores, with_train_subset
from seqlm.train.settings import RunConfig, read_config
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.vocabulary import Vocab

NUM_TUNING_TOKENS = 20_000
"""The settings of dynamic evaluation are chosen on this many tokens of val."""
DAMPING = 0.3
"""This share of the average root mean square is added to each one before dividing by it."""
WARMUP = 64
"""Tokens that the network reads before a segment of train."""
NUM_PARTS = 8
"""The segments of train are summed in this many parts, whatever the number of threads, so that sums have one order."""
_OF_CHAPTER = {
    "token": "char", "activation": "tanh", "num_layers": 1, "embedding": "one_hot", "dropout": 0.0,
    "batch_size": 32, "num_steps": 35, "max_tokens": 10_000, "optimizer": "sgd", "lr": 1.0,
    "schedule": "constant", "grad_clip": 1.0, "truncation": "regular", "num_epochs": 500, "token_budget": None,
    "patience": None, "checkpoint": "last",
}  # fmt: skip
"""The settings of sections 8.5 and 8.6, with random or sequential sampling."""
_HIDDENS_OF_CHAPTER = {"scratch": 512, "rnn": 256}


@dataclass(frozen=True)
class DynamicRule:
    """An update scaled by the gradients' root mean squares, and a pull back to the trained weights."""

    lr: float
    decay: float
    """Share of the way back that a parameter of average root mean square takes at each update."""
    rms: Weights
    """Root mean squares (:func:`gradient_rms`)."""
    trained: Weights

    @property
    def settings(self) -> dict[str, float]:
        """The settings to choose from."""
        return {"lr": self.lr, "decay": self.decay}

    def apply(self, network: Network) -> None:
        """Change the weights by their gradients."""
        network.dynamic_step(self.lr, self._scales, self.trained, self._pulls)

    @cached_property
    def _average_rms(self) -> float:
        num_weights = sum(math.prod(each.shape) for each in self.rms)
        average = sum(float(each.sum()) for each in self.rms) / num_weights
        return average or 1.0  # without any gradient on train, all weights are equally important

    @cached_property
    def _scales(self) -> Weights:
        return [each + DAMPING * self._average_rms for each in self.rms]

    @cached_property
    def _pulls(self) -> Weights:
        """The share of the way back for each parameter, at most 1."""
        return [(each * (self.decay / self._average_rms)).clip(max=1) for each in self.rms]


def gradient_rms(network: Network, ids: NDArray[np.integer], *, segment_length: int, num_segments: int) -> Weights:
    """Return the root mean square of each parameter's gradient over evenly spaced segments of a stream."""
    num_starts = len(range(0, len(ids) - 1, segment_length))
    chosen = np.unique(np.linspace(0, num_starts - 1, min(num_segments, num_starts)).astype(np.int64))
    parts = np.array_split(chosen * segment_length, NUM_PARTS)
    totals = [0 * weight for weight in network.weights]
    for part in network.imap(partial(_sums_of_squares, network, ids, segment_length), parts):
        for total, squares in zip(totals, part, strict=True):
            total += squares
    return [(total / max(len(chosen), 1)) ** 0.5 for total in totals]


def _sums_of_squares(network: Network, ids: NDArray[np.integer], length: int, starts: NDArray[np.int64]) -> Weights:
    """Return the sums of each parameter's squared gradients over the segments that begin at ``starts``."""
    observed = network.copy()
    squares = [0 * weight for weight in observed.weights]
    with observed.without_subnormals():
        for start in starts.tolist():
            raise_if_cancelled()
            state, before = observed.initial_state(1), min(start, WARMUP)
            stream = np.asarray(ids[start - before : start + length + 1], np.int64)  # not all of a large text at once
            if before > 0:
                state = observed.advance_state(stream[None, :before], state)
            observed.compute_gradients(*_segment(stream, before, length), state)
            for square, gradient in zip(squares, observed.gradients, strict=True):
                square += gradient * gradient
    return squares


def trained_weights(network: Network) -> Weights:
    """Return copies of the parameters, in their order."""
    return network.copy().weights


def dynamic_nll(
    network: Network, ids: NDArray[np.integer], *, update_every: int, update: Callable[[Network], None]
) -> Nll:
    """Return -log p of tokens 2 to N of a stream, shape ``(N - 1,)``, with an update after every ``update_every``.

    Each segment is scored before the network learns from it; ``update`` gets the network with its gradients.
    ``network`` itself is not changed.
    """
    adapted, stream, segments = network.copy(), np.asarray(ids, np.int64), []
    state = adapted.initial_state(1)
    with adapted.without_subnormals():
        for start in range(0, len(stream) - 1, update_every):
            raise_if_cancelled()
            inputs, targets = _segment(stream, start, update_every)
            nll, state = adapted.compute_gradients(inputs, targets, state)
            segments.append(nll_array(nll)[0])
            update(adapted)
    return np.concatenate(segments) if segments else np.empty(0)


def _segment(stream: Ids, start: int, length: int) -> tuple[Ids, Ids]:
    """Return inputs and targets of the segment that begins at ``start``, each ``(1, T)``."""
    end = min(start + length, len(stream) - 1)
    return stream[None, start:end], stream[None, start + 1 : end + 1]


def score_run(layout: Layout, run: str, params: ScoreParams, log: Log) -> None:
    """Score a run; write its scores, and the figures that experiments are compared by."""
    scores = _scores(layout, read_config(layout.config(run)), params.dynamic, log)
    metrics = save_scores(layout.scores_of_run(run), scores, log)
    write_metrics(layout.reports("score", f"{run}.json"), headline(metrics[run]))


def _scores(layout: Layout, config: RunConfig, dynamic: DynamicParams | None, log: Log) -> Iterator[Score]:
    """Yield the score of a run; that of its best epoch, if its weights are of another one; and its dynamic score.

    There is a dynamic score if the run saw all of train and learning more helps on val.
    """
    vocab, streams = Vocab.load(layout.vocab(config.token), config.token), read_streams(layout, config.token)
    network = open_network(layout.run(config.run), config.run, vocab.key, config.device, config.num_threads)
    info = describe_run(config, vocab)
    subset = None
    if config.max_tokens is not None:
        subset = read_beginning_of_train(layout, config.token, config.max_tokens)
    static = score_network(info, network, streams, subset)
    yield static
    if (folder := layout.best_of_run(config.run)).is_dir():
        best = open_network(folder, config.run, vocab.key, config.device, config.num_threads)
        yield score_network(describe_run(config, vocab, is_best=True), best, streams, subset, diagnosed=False)
    if dynamic is not None and subset is None:
        train = load_split(layout.corpus(config.token), "train", mmap=True)
        yield from score_dynamically(static, network, streams, train, dynamic, log)


def describe_run(config: RunConfig, vocab: Vocab, *, is_best: bool = False) -> ModelInfo:
    """Return the description of a run's model, or of its best epoch if the run kept the weights of another one."""
    is_part = config.max_tokens is not None and config.max_tokens < vocab.splits["train"].num_tokens
    return ModelInfo(
        f"{config.run}@best" if is_best else config.run,
        "network",
        config.token,
        beginning_chars(vocab, config.max_tokens),
        train_tokens=config.max_tokens if is_part else None,
        network=config.model,
        run=config.run,
        sampling=config.sampling,
        as_in_chapter=_is_as_in_chapter(config),
        epoch="best" if is_best else config.checkpoint,
        chosen_on_val=is_best or config.checkpoint == "best" or config.patience is not None,
    )


def _is_as_in_chapter(config: RunConfig) -> bool:
    settings = _OF_CHAPTER | {"num_hiddens": _HIDDENS_OF_CHAPTER.get(config.model)}
    return all(getattr(config, name) == value for name, value in settings.items())


def score_network(
    info: ModelInfo, network: Network, streams: Streams, train_subset: Stream | None, *, diagnosed: bool = True
) -> Score:
    """Return a network's score on every split and, for characters and if asked, its diagnostics on test.

    ``train_subset`` is the part of train that it was trained on, if that is not all of it.
    """
    score = partial(stream_nll, network)
    diagnosed = diagnosed and token_kind(info.token).is_character
    metadata = diagnose(network_predictor(network), streams["test"].ids) if diagnosed else {}
    found = make_score(info, {split: stream.nll(score) for split, stream in streams.items()}, streams, metadata)
    return found if train_subset is None else with_train_subset(found, train_subset.nll(score), train_subset)


def network_predictor(network: Network) -> Predictor:
    """Return what the diagnostics need of a network."""
    at_once = tokens_at_once(network.vocab_size)

    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        state = network.initial_state(1)
        for start in range(0, len(ids) - 1, at_once):
            logits, state = network.logits(ids[None, start : min(start + at_once, len(ids) - 1)], state)
            yield probabilities(logits[0])

    return Predictor(lambda windows: rows_nll(network, windows, windows.shape[1]), distributions)


def score_dynamically(
    static: Score,
    network: Network,
    streams: Streams,
    train: NDArray[np.integer],
    params: DynamicParams,
    log: Log,
    num_tuning_tokens: int = NUM_TUNING_TOKENS,
) -> Iterator[Score]:
    """Yield a network's dynamic score on val and test, unless its ``static`` score is at least as good on val.

    The settings, which its metadata hold, are chosen on the first ``num_tuning_tokens`` tokens of val, where the bits
    of each are logged. A learning rate of 0, which leaves the network as it is, is always among them.
    """
    info = static.info.as_dynamic()
    val, beginning = streams["val"], streams["val"].beginning(num_tuning_tokens)

    def adapt(rule: DynamicRule, stream: Stream) -> Nll:
        return stream.nll(partial(dynamic_nll, network, update_every=params.update_every, update=rule.apply))

    unchanged = static.nll["val"] if beginning is val else beginning.nll(partial(stream_nll, network))
    log(f"{info.name}, lr 0: {shown_bits(summarise(unchanged, beginning))} on val")
    rms = gradient_rms(network, train, segment_length=params.update_every, num_segments=params.rms_segments)
    trained = trained_weights(network)
    rules = [DynamicRule(lr, decay, rms, trained) for lr in params.lrs for decay in params.decays]
    tried: list[Nll] = []
    for rule, nll in zip(rules, network.imap(partial(adapt, stream=beginning), rules), strict=True):
        tried.append(nll)
        settings = ", ".join(f"{key} {value:g}" for key, value in rule.settings.items())
        log(f"{info.name}, {settings}: {shown_bits(summarise(nll, beginning))} on val")
    best = min(range(len(rules)), key=lambda index: total_nll(tried[index]))
    if total_nll(tried[best]) >= total_nll(unchanged):
        log(f"{info.name}: left out, because no learning rate is better than 0 on val")
        return
    rest = ["test"] if beginning is val else ["val", "test"]
    scored = network.imap(lambda split: adapt(rules[best], streams[split]), rest)
    nll_of = {"val": tried[best]} | dict(zip(rest, scored, strict=True))
    chosen = {f"dynamic_{key}": value for key, value in rules[best].settings.items()}
    metadata = {"choices": chosen, "update_every": params.update_every, "rms_segments": params.rms_segments}
    yield from if_better(make_score(info, nll_of, streams, metadata), static, log)
