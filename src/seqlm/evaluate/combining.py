"""What can be made of the best models' scores without training, and which models are the best of their family."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import best_mixture
from seqlm.score.heldout.splits import Streams
from seqlm.score.store import BEST_OF_KIND, DYNAMIC, Score, headline, load_score, measure
from seqlm.vocab.kinds.registry import Kind, kind_of

_TRIED_PARTNERS = 4
"""N-gram models, the best on val alone, that are tried in a mixture: the best of them need not help most."""


@dataclass(frozen=True)
class Scores:
    """The scores of all models, by family."""

    counting: list[Score]
    networks: list[Score]
    combined: list[Score]
    """The models that count on, the best network as it learns on, and mixtures of networks with a model that counts."""
    choices: dict[str, float]
    """What was chosen on val to make the combined ones."""

    @property
    def all(self) -> list[Score]:
        """All of them."""
        return [*self.counting, *self.networks, *self.combined]

    def of_characters(self) -> list[Score]:
        """Return the models of characters to diagnose, the best on val first: every run, and the best that counts."""
        strongest = [score for score in self.counting if kind_of(score.kind).is_character and score.about[BEST_OF_KIND]]
        shown = [*strongest, *(score for score in self.networks if kind_of(score.kind).is_character)]
        return sorted(shown, key=lambda score: float(score.nats["val"].sum()))

    def headlines(self, measures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Return for each family the figures of its best model on val; an empty family has none."""
        families = {"counting": self.counting, "network": self.networks, "combined": self.combined}
        return {
            family: headline(measures[min(scores, key=lambda s: _bits(measures[s.name]["val"])).name]) if scores else {}
            for family, scores in families.items()
        }


def read_scores(layout: Layout, runs: Sequence[str], streams: Mapping[Kind, Streams], mixtures: bool) -> Scores:
    """Return the scores of the n-gram models and of ``runs``, and what can be made of the best of them.

    The run that is best on val is mixed with the n-gram model of its kind that helps it most on val, and both
    with the other runs of their kind that help them: as they are, and as they learn on, networks and counts.
    """
    counting: list[Score] = []
    for place in [*map(layout.scores_of_ngrams, streams), layout.scores_by_characters]:
        folders = sorted(path for path in place.iterdir() if path.is_dir())
        counting += [load_score(folder, folder.name) for folder in folders]
    counting_on = [score for score in counting if score.adapts]
    counting = [score for score in counting if not score.adapts]
    networks = [load_score(layout.scores_of_run(run), run) for run in runs]

    def on_val(score: Score) -> float:
        return _bits(measure(score.nats["val"], streams[score.kind]["val"]))

    best = min(networks, key=on_val)
    team = sorted((score for score in networks if score.kind == best.kind), key=on_val)
    adapted = list(islice(_adapted(layout, team), None if mixtures else 1))
    combined, choices = list(counting_on), dict[str, float]()
    if adapted:
        combined.append(adapted[0])
        choices |= {f"{name} of {adapted[0].name}": value for name, value in adapted[0].about["choices"].items()}
    for members, partners in ((team, counting), (adapted or team, [*counting, *counting_on])) if mixtures else ():
        of_kind = sorted((score for score in partners if score.kind == best.kind), key=on_val)
        for mixture, weights in _mixtures(members, of_kind[:_TRIED_PARTNERS]):
            if mixture.name not in (score.name for score in combined):
                choices |= {f"weight of {name} in {mixture.name}": weight for name, weight in weights.items()}
                combined.append(mixture)
    return Scores(counting, networks, combined, choices)


def _adapted(layout: Layout, networks: Sequence[Score]) -> Iterator[Score]:
    """Yield the scores of the networks that were evaluated dynamically."""
    for score in networks:
        if (folder := layout.dynamic_scores_of_run(score.name)).exists():
            yield load_score(folder, score.name + DYNAMIC)


def _mixtures(networks: Sequence[Score], partners: Sequence[Score]) -> Iterator[tuple[Score, dict[str, float]]]:
    """Yield the first network mixed with the n-gram model that helps it most, and both with networks that help."""
    pairs = [(partner, best_mixture([networks[0], partner], keep=2)) for partner in partners]
    partner, pair = min(pairs, key=lambda tried: float(tried[1][0].nats["val"].sum()))
    yield pair
    if len(networks) == 1:
        return
    all_together, weights = best_mixture([*networks, partner])
    if set(weights) - {networks[0].name, partner.name}:
        yield all_together, weights


def _bits(measured: Mapping[str, Any]) -> float:
    """Return bits per character; infinite where the model gives a token no chance."""
    value = measured["bits_per_character"]
    return float("inf") if value is None else float(value)
