"""Scores a trained run, or all n-gram models over one kind of token, on all splits."""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.progress import Log
from seqlm.ngrams.models.smoothing import FALLBACK_DISCOUNTS, NGramModel
from seqlm.ngrams.models.smoothing import nats as ngram_nats
from seqlm.ngrams.models.storage import load_models
from seqlm.rnn.network import Network
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.threads import map_in_threads, threads_for
from seqlm.score.diagnostics import counting_predictor, diagnose, network_predictor
from seqlm.score.heldout.splits import TRAIN_SUBSET, Ids, Stream, Streams, read_streams
from seqlm.score.networks.dynamic import RmsRule, SgdRule, dynamic_nll, gradient_roots, trained_weights
from seqlm.score.ngrams.dynamic import recounted_nll
from seqlm.score.settings import DynamicCountsParams, DynamicParams, ScoreParams
from seqlm.score.store import BEST_OF_KIND, DYNAMIC, Score, measure, save_all, shown_bits
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.kinds.registry import Kind, kind_of
from seqlm.vocab.vocabulary import Vocab

_CHOICE_TOKENS = 20_000
"""Tokens of val on which the settings of dynamic evaluation are chosen: there are several, and learning takes time."""


def score_network(name: str, kind: Kind, network: Network, streams: Streams) -> Score:
    """Return a run's score on every split and, for characters, its diagnostics on test."""
    score = partial(stream_nll, network)
    about: dict[str, Any] = {}
    if TRAIN_SUBSET in streams:
        about[TRAIN_SUBSET] = measure(streams[TRAIN_SUBSET].nats(score), streams[TRAIN_SUBSET])
    if kind_of(kind).is_character:
        about |= diagnose(network_predictor(network), streams["test"].ids)
    return Score(name, kind, {split: streams[split].nats(score) for split in SPLITS}, about)


def score_dynamically(
    name: str, kind: Kind, network: Network, streams: Streams, dynamic: DynamicParams, log: Log
) -> Score:
    """Return a run's dynamic score of val and test; the settings that were chosen on val are in what is known of it.

    What each of the settings comes to on the beginning of val is said, in their order; each took its seconds beside
    the others.
    """
    name, val, beginning = name + DYNAMIC, streams["val"], streams["val"].beginning(_CHOICE_TOKENS)

    def learning(rule: SgdRule | RmsRule, stream: Stream) -> tuple[Nats, float]:
        begin = time.monotonic()
        nats = stream.nats(partial(dynamic_nll, network, every=dynamic.every, apply=rule.apply))
        return nats, time.monotonic() - begin

    rules, tried = list(_rules(network, streams["train"], dynamic)), []
    on_beginning = map_in_threads(partial(learning, stream=beginning), rules, threads_for(network))
    for rule, (nats, seconds) in zip(rules, on_beginning, strict=True):
        tried.append(nats)
        settings = ", ".join(f"{key} {value:g}" for key, value in rule.settings.items())
        log(f"{name}, {settings}: {shown_bits(measure(nats, beginning))} on val, {seconds:.1f} s")
    best = min(range(len(rules)), key=lambda index: float(tried[index].sum()))
    rest = ["test"] if beginning is val else ["val", "test"]
    scored = map_in_threads(lambda split: learning(rules[best], streams[split])[0], rest, threads_for(network))
    found = {"val": tried[best]} | dict(zip(rest, scored, strict=True))
    choices = {f"dynamic_{key}": value for key, value in rules[best].settings.items()}
    return Score(name, kind, found, {"choices": choices})


def _rules(network: Network, train: Stream, dynamic: DynamicParams) -> Iterator[SgdRule | RmsRule]:
    """Yield the rules of learning to choose from."""
    if dynamic.rule == "sgd":
        yield from (SgdRule(lr, dynamic.clip) for lr in dynamic.lrs)
        return
    roots = gradient_roots(network, train.ids, every=dynamic.every, num_segments=dynamic.segments)
    trained = trained_weights(network)
    yield from (RmsRule(lr, decay, roots, trained) for lr in dynamic.lrs for decay in dynamic.decays)


def score_kind(layout: Layout, kind: Kind, params: ScoreParams, log: Log) -> None:
    """Score all n-gram models over a kind of token, and one that goes on counting if train is not too long."""
    streams = read_streams(layout, kind, params.max_tokens)
    scores = _scores_of_kind(layout, kind, params.dynamic_counts, streams, log)
    save_all(scores, layout.scores_of_ngrams(kind), streams, log)


def _scores_of_kind(
    layout: Layout, kind: Kind, dynamic: DynamicCountsParams | None, streams: Streams, log: Log
) -> Iterator[Score]:
    vocab = Vocab.load(layout.vocab(kind), kind)
    yield from score_ngrams(load_models(layout.ngrams(kind), len(vocab)), kind, streams, log)
    if dynamic is None:
        return
    if (num_tokens := vocab.splits["train"].num_tokens) > dynamic.max_tokens:
        allowed = f"score.dynamic_counts.max_tokens allows {dynamic.max_tokens:,}"
        log(f"{kind}: no model goes on counting: train has {num_tokens:,} tokens, {allowed}")
        return
    train = load_split(layout.corpus(kind), "train", mmap=True, vocab=vocab)
    yield score_counting_on(kind, train, len(vocab), streams, dynamic)


def score_ngrams(models: Mapping[str, NGramModel], kind: Kind, streams: Streams, log: Log) -> Iterator[Score]:
    """Yield the score of every n-gram model of a kind, named ``KIND-MODEL``; the best on val has its diagnostics."""
    _say_fallbacks(models, kind, log)
    on_val = {name: float(_ngram_nats(model, streams["val"]).sum()) for name, model in models.items()}
    strongest = min(on_val, key=lambda name: on_val[name])
    for name, model in models.items():
        nats = {split: _ngram_nats(model, streams[split]) for split in SPLITS}
        about: dict[str, Any] = {BEST_OF_KIND: name == strongest}
        if name == strongest and kind_of(kind).is_character:
            about |= diagnose(counting_predictor(model), streams["test"].ids)
        yield Score(f"{kind}-{name}", kind, nats, about)


def score_counting_on(kind: Kind, train: Ids, vocab_size: int, streams: Streams, params: DynamicCountsParams) -> Score:
    """Return the score on val and test of a model that counted ``train``, all of it, and goes on counting."""
    order = params.order_for(kind, len(train))
    score = partial(recounted_nll, train, vocab_size=vocab_size, order=order, num_times=params.num_times)
    found = {split: streams[split].nats(score) for split in ("val", "test")}
    return Score(f"{kind}-kneser-ney-{order}{DYNAMIC}", kind, found)


def _ngram_nats(model: NGramModel, stream: Stream) -> Nats:
    return stream.nats(partial(ngram_nats, model))


def _say_fallbacks(models: Mapping[str, NGramModel], kind: Kind, log: Log) -> None:
    # Only models that estimate discounts have such orders.
    if orders := sorted({order for model in models.values() for order in getattr(model, "fallback_orders", ())}):
        discounts = ", ".join(f"{discount:g}" for discount in FALLBACK_DISCOUNTS)
        log(
            f"{kind}: too few different counts to estimate Kneser-Ney discounts of order "
            f"{', '.join(map(str, orders))}: {discounts} are taken"
        )
