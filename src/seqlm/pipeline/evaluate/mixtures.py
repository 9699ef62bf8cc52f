"""The scores of all models: those that are stored, and linear mixtures of them.

The weights and members of mixtures are chosen on val.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp
from seqlm.core.files import remove_others
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.models.info import Metadata, ModelFile, mixture_info
from seqlm.models.mixture import mix
from seqlm.models.scored_text import Streams
from seqlm.pipeline.score.scores import Scores, load_scores_folder, make_scores, val_bits
from seqlm.vocab.kinds import KINDS

NUM_PARTNERS = 4
"""How many n-gram models are tried as partners of the best network: the one that is best alone on
val is not always the best partner."""
MIN_WEIGHT = 0.05
"""A member with a smaller weight is left out."""
NUM_STEPS = 200
"""Steps of expectation maximisation."""


def collect_scores(
    layout: Layout, runs: Sequence[str], texts: Mapping[str, Streams]
) -> list[Scores]:
    """Return the scores of all n-gram models and runs, static before dynamic ones, and of mixtures.

    ``texts``: kind of token -> its scored texts. Raises DataError if the scores of a model are
    missing.
    """
    ngrams, networks = (
        list(chain.from_iterable(map(load_scores_folder, folders)))
        for folders in (map(layout.scores_of_ngrams, KINDS), map(layout.scores_of_run, runs))
    )
    ngrams.sort(key=lambda score: not score.info.counts_own_tokens)
    stored = sorted([*ngrams, *networks], key=lambda score: score.info.dynamic)
    return [*stored, *make_mixtures(ngrams, networks, texts)]


def make_mixtures(
    ngrams: Sequence[Scores], networks: Sequence[Scores], texts: Mapping[str, Streams]
) -> list[Scores]:
    """Return the mixture of the networks that help each other and of the n-gram model that helps
    the best one most.

    There is a static mixture, and a dynamic one of networks and n-gram models that may be dynamic.
    ``texts``: kind of token -> its scored texts.
    """
    best = min((network for network in networks if not network.info.dynamic), key=val_bits)
    token = best.info.token
    networks, ngrams = (
        sorted((score for score in scores if score.info.token == token), key=val_bits)
        for scores in (networks, ngrams)
    )
    replaced = {network.info.members[0] for network in networks if network.info.dynamic}
    static, partners = (
        [score for score in scores if not score.info.dynamic] for scores in (networks, ngrams)
    )
    dynamic = [network for network in networks if network.name not in replaced]
    mixtures: dict[str, Scores] = {}
    for members, candidates in ((static, partners), (dynamic, ngrams)):
        partner = min(
            candidates[:NUM_PARTNERS],
            key=lambda ngram: val_bits(best_mixture([members[0], ngram], texts[token])),
        )
        mixture = best_mixture([*members, partner], texts[token])
        if len(mixture.info.members) > 1:  # otherwise all others were dropped
            mixtures[mixture.name] = mixture
    return list(mixtures.values())


def best_mixture(members: Sequence[Scores], texts: Streams) -> Scores:
    """Return the mixture of models over one kind of token, with the weights that were chosen on
    val as its metadata.

    Members with a negligible weight are left out; one member may remain.
    """
    members = list(members)
    while (weights := choose_weights([member.nll["val"] for member in members])).min() < MIN_WEIGHT:
        del members[int(np.argmin(weights))]
    splits = [split for split in members[0].nll if all(split in member.nll for member in members)]
    mixed = {split: mix([member.nll[split] for member in members], weights) for split in splits}
    names = [member.name for member in members]
    metadata = {"weights": dict(zip(names, weights.tolist(), strict=True))}
    return make_scores(mixture_info([member.info for member in members]), mixed, texts, metadata)


def save_mixtures(folder: Path, scores: Sequence[Scores]) -> None:
    """Write what the mixtures among some scores are, one JSON file for each, and remove other
    mixtures."""
    mixtures = {f"{score.name}.json": score for score in scores if score.info.family == "mixture"}
    folder.mkdir(parents=True, exist_ok=True)
    remove_others(list(mixtures), folder)
    for name, score in mixtures.items():
        ModelFile(model=score.info, metadata=Metadata(**score.metadata)).write(folder / name)


def choose_weights(nll: Sequence[Nll]) -> NDArray[np.float64]:
    """Return the weights that make a text most likely, by expectation maximisation from equal
    weights.

    The log likelihood is concave in the weights, so there is one maximum. Tokens to which no member
    gives any probability are ignored.
    """
    probs = exp(-np.stack(nll))
    # Boolean indexing returns columns in another order of memory, and so would sums.
    probs = np.ascontiguousarray(probs[:, probs.any(axis=0)])
    weights = np.full(len(probs), 1 / len(probs))
    if not probs.size:
        return weights
    for _ in range(NUM_STEPS):
        posteriors = weights[:, None] * probs
        weights = (posteriors / posteriors.sum(axis=0)).mean(axis=1)
    return weights
