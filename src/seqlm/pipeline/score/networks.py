"""Scores a trained network, as it is and as it keeps learning."""

from collections.abc import Iterator
from itertools import product

from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.models.index import Models
from seqlm.models.networks import DynamicNetwork, StaticNetwork, train_gradient_rms
from seqlm.models.scored_text import Ids, bits_or_infinity, measure
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import (
    HELD_OUT,
    Scores,
    format_bits,
    make_scores,
    save_scores_folder,
    score_model,
)
from seqlm.pipeline.score.settings import DynamicParams, ScoreParams
from seqlm.vocab.corpus import load_split

NUM_TUNING_TOKENS = 20_000
"""The settings of dynamic evaluation are chosen on this many tokens of val."""


def score_run(layout: Layout, run: str, params: ScoreParams, log: Log) -> None:
    """Score a run, and write its scores."""
    save_scores_folder(layout.scores_of_run(run), _scores(layout, run, params.dynamic, log), log)


def _scores(layout: Layout, run: str, dynamic: DynamicParams | None, log: Log) -> Iterator[Scores]:
    """Yield the scores of a network and, if it saw all of train and it helps on val, as it keeps
    learning."""
    model = Models(layout, device=None).network(run)
    heldout = Heldout(layout, model.vocab.kind)
    yield score_model(model, heldout)
    if dynamic is not None and model.info.train_tokens is None:
        train = load_split(layout.corpus(model.vocab.kind), "train")
        yield from tune_and_score_dynamic(model, heldout, train, dynamic, log)


def tune_and_score_dynamic(
    model: StaticNetwork, heldout: Heldout, train: Ids, params: DynamicParams, log: Log
) -> Iterator[Scores]:
    """Yield the scores on val and test of a network that keeps learning, unless no setting improves
    it.

    The settings, which the metadata hold, are chosen on the first tokens of val, where the bits of
    each are logged. A learning rate of 0, which leaves the network as it is, is always among them.
    """
    beginning, streams = heldout.beginning("val", NUM_TUNING_TOKENS), heldout.streams
    name, imap = model.info.as_dynamic().name, model.network.imap
    unchanged = measure(beginning.scored_nll(model.token_nll), beginning)
    log(f"{name}, lr 0: {format_bits(unchanged)} on val")
    rms = train_gradient_rms(model.network, train)
    models = [
        DynamicNetwork(model, *settings, lambda: rms)
        for settings in product(params.lrs, params.decays)
    ]
    tried = []
    for each, nll in zip(
        models, imap(lambda each: beginning.scored_nll(each.token_nll), models), strict=True
    ):
        tried.append(measure(nll, beginning))
        log(f"{name}, lr {each.lr:g}, decay {each.decay:g}: {format_bits(tried[-1])} on val")
    best = min(range(len(models)), key=lambda index: bits_or_infinity(tried[index]))
    if bits_or_infinity(tried[best]) >= bits_or_infinity(unchanged):
        log(f"{name}: left out, because no learning rate is better than 0 on val")
        return
    chosen = models[best]
    nll_of = dict(
        zip(
            HELD_OUT,
            imap(lambda split: streams[split].scored_nll(chosen.token_nll), HELD_OUT),
            strict=True,
        )
    )
    yield make_scores(
        chosen.info,
        nll_of,
        streams,
        {"choices": {"dynamic_lr": chosen.lr, "dynamic_decay": chosen.decay}},
    )
