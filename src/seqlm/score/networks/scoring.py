"""Scores a trained network, as it is and by dynamic evaluation."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.progress import Log
from seqlm.heldout.scored_text import Stream, Streams, read_beginning_of_train, read_streams
from seqlm.rnn.array_network import HasArrays
from seqlm.rnn.logits import probabilities, tokens_at_once
from seqlm.rnn.opening import open_network
from seqlm.rnn.scoring import stream_nll, window_nll
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.metrics import shown_bits, summarise, total_nats
from seqlm.score.model_info import ModelInfo, beginning_chars
from seqlm.score.networks.dynamic import DynamicRule, dynamic_nll, gradient_roots, trained_weights
from seqlm.score.settings import DynamicParams
from seqlm.score.store import Score, if_better, score_of, with_train_subset
from seqlm.train.settings import RunConfig
from seqlm.vocab.kinds import token_kind
from seqlm.vocab.vocabulary import Vocab

NUM_TUNING_TOKENS = 20_000
"""The settings of dynamic evaluation are chosen on this many tokens of val."""


def score_run(layout: Layout, config: RunConfig, dynamic: DynamicParams | None, log: Log) -> Iterator[Score]:
    """Yield the score of a run; that of its best epoch, if its weights are of another one; and its dynamic score.

    There is a dynamic score if the run saw all of train and learning more helps on val.
    """
    vocab, streams = Vocab.load(layout.vocab(config.token), config.token), read_streams(layout, config.token)
    network = open_network(layout.run(config.run), config.run, config.device, config.num_threads)
    info = describe_run(config, vocab)
    subset = None
    if config.max_tokens is not None:
        subset = read_beginning_of_train(layout, config.token, config.max_tokens)
    static = score_network(info, network, streams, subset)
    yield static
    if (folder := layout.best_of_run(config.run)).is_dir():
        best = open_network(folder, config.run, config.device, config.num_threads)
        yield score_network(describe_run(config, vocab, is_best=True), best, streams, subset, diagnosed=False)
    if dynamic is not None and config.max_tokens is None:
        yield from score_dynamically(static, network, streams, dynamic, log)


def describe_run(config: RunConfig, vocab: Vocab, *, is_best: bool = False) -> ModelInfo:
    """Return the description of a run's model, or of its best epoch if the run kept the weights of another one."""
    return ModelInfo(
        f"{config.run}@best" if is_best else config.run,
        "network",
        config.token,
        beginning_chars(vocab, config.max_tokens),
        network=config.model,
        epoch="best" if is_best else config.keep,
        chosen_on_val=is_best or config.keep == "best" or config.patience is not None,
    )


def score_network(
    info: ModelInfo, network: HasArrays, streams: Streams, train_subset: Stream | None, *, diagnosed: bool = True
) -> Score:
    """Return a network's score on every split and, for characters and if asked, its diagnostics on test.

    ``train_subset`` is the part of train that it was trained on, if that is not all of it.
    """
    score = partial(stream_nll, network)
    diagnosed = diagnosed and token_kind(info.token).is_character
    metadata = diagnose(network_predictor(network), streams["test"].ids) if diagnosed else {}
    found = score_of(info, {split: stream.nats(score) for split, stream in streams.items()}, streams, metadata)
    return found if train_subset is None else with_train_subset(found, train_subset.nats(score), train_subset)


def network_predictor(network: HasArrays) -> Predictor:
    """Return what the diagnostics need of a network."""
    arrays = network.arrays
    at_once = tokens_at_once(arrays.vocab_size)

    def distributions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        state = arrays.initial_state(1)
        for start in range(0, len(ids) - 1, at_once):
            logits, state = arrays.logits(ids[None, start : min(start + at_once, len(ids) - 1)], state)
            yield from probabilities(logits[0])

    return Predictor(partial(window_nll, arrays), distributions)


def score_dynamically(
    static: Score,
    network: HasArrays,
    streams: Streams,
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

    def evaluate(rule: DynamicRule, stream: Stream) -> tuple[Nats, float]:
        begin = time.monotonic()
        nats = stream.nats(partial(dynamic_nll, network, update_every=params.update_every, update=rule.apply))
        return nats, time.monotonic() - begin

    unchanged = static.nats["val"] if beginning is val else beginning.nats(partial(stream_nll, network))
    log(f"{info.name}, lr 0: {shown_bits(summarise(unchanged, beginning))} on val")
    rules = list(_rules(network, streams["train"], params))
    tried: list[Nats] = []
    on_beginning = network.arrays.imap(partial(evaluate, stream=beginning), rules)
    for rule, (nats, seconds) in zip(rules, on_beginning, strict=True):
        tried.append(nats)
        settings = ", ".join(f"{key} {value:g}" for key, value in rule.settings.items())
        log(f"{info.name}, {settings}: {shown_bits(summarise(nats, beginning))} on val, {seconds:.1f} s")
    best = min(range(len(rules)), key=lambda index: total_nats(tried[index]))
    if total_nats(tried[best]) >= total_nats(unchanged):
        log(f"{info.name}: left out, because no learning rate is better than 0 on val")
        return
    rest = ["test"] if beginning is val else ["val", "test"]
    scored = network.arrays.imap(lambda split: evaluate(rules[best], streams[split])[0], rest)
    nats_of = {"val": tried[best]} | dict(zip(rest, scored, strict=True))
    chosen: dict[str, Any] = {f"dynamic_{key}": value for key, value in rules[best].settings.items()}
    yield from if_better(score_of(info, nats_of, streams, {"choices": chosen}), static, log)


def _rules(network: HasArrays, train: Stream, params: DynamicParams) -> Iterator[DynamicRule]:
    roots = gradient_roots(network, train.ids, segment_length=params.update_every, num_segments=params.rms_segments)
    trained = trained_weights(network)
    yield from (DynamicRule(lr, decay, roots, trained) for lr in params.lrs for decay in params.decays)
