"""The scores of all models: those that are stored, and linear mixtures of them.

The weights and members of mixtures are chosen on val.
"""

from collections.abc import Mapping, Sequence
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
"""The best n-gram models on val are tried as partners of the best network: the best of them need
not help most."""
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
    ngrams = [
        scores for kind in KINDS for scores in load_scores_folder(layout.scores_of_ngrams(kind))
    ]
    ngrams.sort(key=lambda scores: not scores.info.counts_own_tokens)
    networks = [scores for run in runs for scores in load_scores_folder(layout.scores_of_run(run))]
    stored = sorted([*ngrams, *networks], key=lambda scores: scores.info.dynamic)
    return [*stored, *make_mixtures(ngrams, networks, texts)]


def make_mixtures(
    ngrams: Sequence[Scores], networks: Sequence[Scores], texts: Mapping[str, Streams]
) -> list[Scores]:
    """Return the mixture of the networks that help each other and of the n-gram model that helps
    the best one most.

    There is a static mixture, and a dynamic one in which networks and n-gram models keep learning.
    ``texts``: kind of token -> its scored texts.
    """
    token = min(
        (network for network in networks if not network.info.dynamic), key=val_bits
    ).info.token
    of_token = sorted(
        (network for network in networks if network.info.token == token), key=val_bits
    )
    partners = sorted((ngram for ngram in ngrams if ngram.info.token == token), key=val_bits)
    made: dict[str, Scores] = {}
    for dynamic in (False, True):
        members = _members(of_token, dynamic)
        allowed = [partner for partner in partners if dynamic or not partner.info.dynamic][
            :NUM_PARTNERS
        ]
        pairs = {
            partner.name: val_bits(best_mixture([members[0], partner], texts[token]))
            for partner in allowed
        }
        mixture = best_mixture(
            [*members, min(allowed, key=lambda each: pairs[each.name])], texts[token]
        )
        if len(mixture.info.members) > 1:  # otherwise only one has a weight that matters
            made[mixture.name] = mixture
    return list(made.values())


def _members(networks: Sequence[Scores], dynamic: bool) -> list[Scores]:
    """Return the static networks or, in a dynamic mixture, each network's dynamic score if there is
    one."""
    if not dynamic:
        return [network for network in networks if not network.info.dynamic]
    replaced = {network.info.members[0] for network in networks if network.info.dynamic}
    return [network for network in networks if network.name not in replaced]


def best_mixture(members: Sequence[Scores], texts: Streams) -> Scores:
    """Return the mixture of models over one kind of token; its metadata hold the weights that were
    chosen on val.

    Members with a negligible weight are left out; one member may remain.
    """
    members = list(members)
    weights = choose_weights([member.nll["val"] for member in members])
    while weights.min() < MIN_WEIGHT:
        del members[int(np.argmin(weights))]
        weights = choose_weights([member.nll["val"] for member in members])
    splits = [split for split in members[0].nll if all(split in member.nll for member in members)]
    mixed = {split: mix([member.nll[split] for member in members], weights) for split in splits}
    metadata = {
        "weights": {
            member.name: weight for member, weight in zip(members, weights.tolist(), strict=True)
        }
    }
    return make_scores(mixture_info([member.info for member in members]), mixed, texts, metadata)


def save_mixtures(folder: Path, scores: Sequence[Scores]) -> None:
    """Write what the mixtures among some scores are, one JSON file for each, and remove other
    mixtures."""
    mixtures = {f"{score.name}.json": score for score in scores if score.info.family == "mixture"}
    folder.mkdir(parents=True, exist_ok=True)
    remove_others(list(mixtures), folder)
    for name, score in mixtures.items():
        metadata = Metadata(**score.metadata)
        ModelFile(model=score.info, metadata=metadata).write(folder / name)


def choose_weights(nll: Sequence[Nll]) -> NDArray[np.float64]:
    """Return the weights that make a text most likely, by expectation maximisation from equal
    weights.

    The log likelihood is concave in the weights, so there is one maximum. Tokens to which no member
    gives any probability are ignored.
    """
    probs = exp(-np.stack([np.asarray(each) for each in nll]))
    probs = np.ascontiguousarray(
        probs[:, probs.any(axis=0)]
    )  # a selection of columns is stored by columns
    weights = np.full(len(probs), 1 / len(probs))
    if not probs.size:
        return weights
    for _ in range(NUM_STEPS):
        shares = weights[:, None] * probs
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return weights
