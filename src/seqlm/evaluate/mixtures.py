"""The scores of all models: those that are stored, and linear mixtures of them.

The weights and members of mixtures are chosen on val.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import exp, log
from seqlm.core.files import read_checksummed, remove_others, write_checksummed
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nll
from seqlm.heldout.scored_text import ScoredText
from seqlm.score.model_info import DYNAMIC, ModelInfo
from seqlm.score.store import NUM_PARTNERS, Score, load_scores, make_score, val_bits
from seqlm.vocab.kinds import KINDS

FORMAT = 1
MIN_WEIGHT = 0.05
"""A member with a smaller weight is left out."""
NUM_STEPS = 200
"""Steps of expectation maximisation."""

Texts = Mapping[str, ScoredText]
"""Split -> its scored text, as tokens of one kind."""
Weights = NDArray[np.float64]


def collect_scores(layout: Layout, runs: Sequence[str], texts: Mapping[str, Texts], mixtures: bool) -> list[Score]:
    """Return the scores of all n-gram models and runs, static before dynamic ones, and of mixtures if asked for.

    ``texts``: kind of token -> its scored texts. Raises DataError if the scores of a model are missing.
    """
    folders = [*map(layout.scores_of_ngrams, KINDS), layout.scores_word_to_char]
    ngrams = [score for folder in folders for score in load_scores(folder)]
    networks = [score for run in runs for score in load_scores(layout.scores_of_run(run))]
    stored = sorted([*ngrams, *networks], key=lambda score: score.info.dynamic)
    return [*stored, *make_mixtures(ngrams, networks, texts)] if mixtures else stored


def make_mixtures(ngrams: Sequence[Score], networks: Sequence[Score], texts: Mapping[str, Texts]) -> list[Score]:
    """Return mixtures of the best network on val with the n-gram model that helps it most, and with other networks.

    Networks over words, which need not predict spaces, are mixed only if there are no others. There are static
    mixtures, and dynamic ones in which networks and n-gram models keep learning.
    ``texts``: kind of token -> its scored texts.
    """
    static = [network for network in networks if not network.info.dynamic]
    token = min(predicting_all(static), key=val_bits).info.token
    of_token = sorted((network for network in networks if network.info.token == token), key=val_bits)
    partners = sorted((ngram for ngram in ngrams if ngram.info.token == token), key=val_bits)
    made: dict[str, Score] = {}
    for dynamic in (False, True):
        members = _members(of_token, dynamic)
        allowed = [partner for partner in partners if dynamic or not partner.info.dynamic]
        for mixture in _mixtures(members, allowed[:NUM_PARTNERS], texts[token]):
            made.setdefault(mixture.name, mixture)
    return list(made.values())


def _members(networks: Sequence[Score], dynamic: bool) -> list[Score]:
    """Return the static networks or, in a dynamic mixture, each network's dynamic score if there is one."""
    if not dynamic:
        return [network for network in networks if not network.info.dynamic]
    replaced = {network.info.members[0] for network in networks if network.info.dynamic}
    return [network for network in networks if network.name not in replaced]


def predicting_all(scores: Iterable[Score]) -> list[Score]:
    """Return the scores of models that predict separators between words too, or all if there is no such model.

    The other models have it easier, so they lead no group.
    """
    scores = list(scores)
    return [score for score in scores if not predicts_only_words(score)] or scores


def predicts_only_words(score: Score) -> bool:
    """Return whether a model leaves out the separators between words."""
    return bool(score.metrics["test"]["separator_bits"])


def _mixtures(networks: Sequence[Score], partners: Sequence[Score], texts: Texts) -> Iterator[Score]:
    """Yield the first network mixed with the partner that helps it most, and both with the networks that help.

    There is no mixture if only one member has a weight that matters.
    """
    pairs = [(partner, best_mixture([networks[0], partner], texts)) for partner in partners]
    partner, pair = min(pairs, key=lambda tried: float(tried[1].nll["val"].sum()))
    all_together = best_mixture([*networks, partner], texts)
    for mixture in (pair, all_together):
        if len(mixture.info.members) > 1:
            yield mixture


def best_mixture(members: Sequence[Score], texts: Texts) -> Score:
    """Return the mixture of models over one kind of token; its metadata hold the weights that were chosen on val.

    Members with a negligible weight are left out; one member may remain.
    """
    members = list(members)
    weights = choose_weights([member.nll["val"] for member in members])
    while weights.min() < MIN_WEIGHT:
        del members[int(np.argmin(weights))]
        weights = choose_weights([member.nll["val"] for member in members])
    splits = [split for split in members[0].nll if all(split in member.nll for member in members)]
    mixed = {split: mix([member.nll[split] for member in members], weights) for split in splits}
    chosen = {f"weight of {member.name}": weight for member, weight in zip(members, weights.tolist(), strict=True)}
    metadata = {"choices": chosen, "weights": {m.name: w for m, w in zip(members, weights.tolist(), strict=True)}}
    return make_score(describe_mixture([member.info for member in members]), mixed, texts, metadata)


def save_mixtures(folder: Path, scores: Sequence[Score]) -> None:
    """Write what the mixtures among some scores are, one JSON file for each, and remove other mixtures."""
    mixtures = {score.name: score for score in scores if score.info.family == "mixture"}
    folder.mkdir(parents=True, exist_ok=True)
    remove_others([f"{name}.json" for name in mixtures], folder)
    for name, score in mixtures.items():
        value = {"format": FORMAT, "model": asdict(score.info), "weights": score.metadata["weights"]}
        write_checksummed(folder / f"{name}.json", value)


def load_mixtures(folder: Path) -> dict[ModelInfo, dict[str, float]]:
    """Return each mixture's weights by member, sorted by the mixtures' names; none if there is no such folder.

    Raises DataError if a file is broken.
    """
    values = [read_checksummed(path, FORMAT, "run the evaluate stage again") for path in sorted(folder.glob("*.json"))]
    return {ModelInfo.from_json(value["model"]): value["weights"] for value in values}


def mix(nll: Sequence[Nll], weights: Weights) -> Nll:
    """Return the surprisals of the mixture of models whose surprisals are ``nll``."""
    probs = np.zeros(len(nll[0]))
    for weight, each in zip(weights, nll, strict=True):
        probs += weight * exp(-each)
    return -log(probs)


def choose_weights(nll: Sequence[Nll]) -> Weights:
    """Return the weights that make a text most likely, by expectation maximisation from equal weights.

    The log likelihood is concave in the weights, so there is one maximum. Tokens to which no member gives any
    probability are ignored.
    """
    probs = exp(-np.stack([np.asarray(each) for each in nll]))
    probs = np.ascontiguousarray(probs[:, probs.any(axis=0)])  # a selection of columns is stored by columns
    weights = np.full(len(probs), 1 / len(probs))
    if not probs.size:
        return weights
    for _ in range(NUM_STEPS):
        shares = weights[:, None] * probs
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return weights


def describe_mixture(members: Sequence[ModelInfo]) -> ModelInfo:
    """Return what a mixture is; its name joins those of its members, dynamic ones first and marked once."""
    dynamic = [member.members[0] for member in members if member.dynamic]
    static = [member.name for member in members if not member.dynamic]
    names = [*dynamic[:-1], dynamic[-1] + DYNAMIC, *static] if dynamic else static
    return ModelInfo(
        "+".join(names),
        "mixture",
        members[0].token,
        max(member.train_chars for member in members),
        dynamic=bool(dynamic),
        chosen_on_val=True,
        members=tuple(member.name for member in members),
    )
