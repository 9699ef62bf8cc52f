"""Scores a trained network, as it is and as it keeps learning."""

from collections.abc import Iterator
from itertools import product

from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.models.index import Models
from seqlm.models.networks import DynamicNetwork, StaticNetwork, train_gradient_rms
from seqlm.models.scored_text import Ids
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
        train = load_split(layout.corpus(model.vocab.kind), "train", model.vocab)
        yield from tune_and_score_dynamic(model, heldout, train, dynamic, log)


def tune_and_score_dynamic(
    model: StaticNetwork, heldout: Heldout, train: Ids, params: DynamicParams, log: Log
) -> Iterator[Scores]:
    """Yield the scores on val and test of a network that keeps learning, unless no setting improves
    it.

    The settings, which the metadata hold, are chosen on the first tokens of val, where the bits of
    each are logged. A learning rate of 0, which leaves the network as it is, is always among them.
    """
    head, streams = heldout.head("val", NUM_TUNING_TOKENS), heldout.streams
    name, imap = model.info.as_dynamic().name, model.network.imap
    unchanged = head.bits_per_character(head.scored_nll(model.token_nll))
    log(f"{name}, lr 0: {format_bits(unchanged)} on the validation set")
    rms = train_gradient_rms(model.network, train)
    models = [
        DynamicNetwork(model, *settings, lambda: rms)
        for settings in product(params.lrs, params.decays)
    ]
    tried: dict[DynamicNetwork, float] = {}
    nll_of_models = imap(lambda dynamic: head.scored_nll(dynamic.token_nll), models)
    for dynamic, nll in zip(models, nll_of_models, strict=True):
        tried[dynamic] = head.bits_per_character(nll)
        settings = f"lr {dynamic.lr:g}, decay {dynamic.decay:g}"
        log(f"{name}, {settings}: {format_bits(tried[dynamic])} on the validation set")
    best = min(models, key=tried.__getitem__)
    if tried[best] >= unchanged:
        log(f"{name}: left out, because no learning rate is better than 0 on the validation set")
        return
    nll_of_splits = imap(lambda split: streams[split].scored_nll(best.token_nll), HELD_OUT)
    yield make_scores(
        best.info,
        dict(zip(HELD_OUT, nll_of_splits, strict=True)),
        streams,
        {"choices": {"dynamic_lr": best.lr, "dynamic_decay": best.decay}},
    )
