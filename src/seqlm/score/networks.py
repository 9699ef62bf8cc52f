"""Scores a trained network, as it is and as it keeps learning."""

from collections.abc import Iterator
from itertools import product

from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.models.dynamic import DynamicNetwork
from seqlm.models.networks import StaticNetwork, open_run
from seqlm.models.scored_text import Ids, Stream, Streams, measure
from seqlm.score.diagnostics import context_metadata
from seqlm.score.heldout import Heldout
from seqlm.score.scores import Scores, if_better, make_scores, save_all, score_model, shown_bits, total_nll
from seqlm.score.settings import DynamicParams, ScoreParams
from seqlm.train.settings import read_config
from seqlm.vocab.corpus import load_split

NUM_TUNING_TOKENS = 20_000
"""The settings of dynamic evaluation are chosen on this many tokens of val."""


def score_run(layout: Layout, run: str, params: ScoreParams, log: Log) -> None:
    """Score a run, and write its scores."""
    save_all(layout.scores_of_run(run), _scores(layout, run, params.dynamic, log), log)


def _scores(layout: Layout, run: str, dynamic: DynamicParams | None, log: Log) -> Iterator[Scores]:
    """Yield the scores of a network and, if it saw all of train and it helps on val, as it keeps learning."""
    model, config = open_run(layout, run), read_config(layout.config(run))
    heldout = Heldout(layout, model.vocab.kind)
    subset = heldout.beginning_of_train(config.max_tokens) if config.max_tokens is not None else None
    static = score_network(model, heldout.streams, subset)
    yield static
    if dynamic is not None and subset is None:
        train = load_split(layout.corpus(model.vocab.kind), "train", mmap=True)
        yield from score_dynamically(static, model, heldout.streams, train, dynamic, log)


def score_network(model: StaticNetwork, streams: Streams, subset: Stream | None) -> Scores:
    """Return a network's scores on every split and, for characters, how they depend on context."""
    return score_model(model, streams, subset=subset, metadata=context_metadata(model, streams["test"].ids))


def score_dynamically(
    static: Scores,
    model: StaticNetwork,
    streams: Streams,
    train: Ids,
    params: DynamicParams,
    log: Log,
    num_tuning_tokens: int = NUM_TUNING_TOKENS,
) -> Iterator[Scores]:
    """Yield the scores on val and test of a network that keeps learning, unless ``static`` ones are as good on val.

    The settings, which the metadata hold, are chosen on the first ``num_tuning_tokens`` tokens of val, where the bits
    of each are logged. A learning rate of 0, which leaves the network as it is, is always among them.
    """
    val, beginning = streams["val"], streams["val"].beginning(num_tuning_tokens)
    models = DynamicNetwork.of(model, train, product(params.lrs, params.decays))
    name, imap = models[0].name, model.network.imap
    unchanged = static.nll["val"] if beginning is val else beginning.nll(model.token_nll)
    log(f"{name}, lr 0: {shown_bits(measure(unchanged, beginning))} on val")
    models[0].prepare()  # the root mean squares, which take all threads
    tried = []
    for each, nll in zip(models, imap(lambda each: beginning.nll(each.token_nll), models), strict=True):
        tried.append(nll)
        log(f"{name}, lr {each.lr:g}, decay {each.decay:g}: {shown_bits(measure(nll, beginning))} on val")
    best = min(range(len(models)), key=lambda index: total_nll(tried[index]))
    if total_nll(tried[best]) >= total_nll(unchanged):
        log(f"{name}: left out, because no learning rate is better than 0 on val")
        return
    chosen, rest = models[best], ["test"] if beginning is val else ["val", "test"]
    scored = imap(lambda split: streams[split].nll(chosen.token_nll), rest)
    nll_of = {"val": tried[best]} | dict(zip(rest, scored, strict=True))
    metadata = {"choices": {"dynamic_lr": chosen.lr, "dynamic_decay": chosen.decay}}
    yield from if_better(make_scores(chosen.info, nll_of, streams, metadata), static, log)
