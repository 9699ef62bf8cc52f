"""What can be made of the best models' scores without training, and which models are the best of their family."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import best_mixture
from seqlm.score.measures import DYNAMIC, STRONGEST, Score, headline, load_score, measure
from seqlm.score.splits import Streams
from seqlm.vocab.vocabulary import Kind


@dataclass(frozen=True)
class Scores:
    """The scores of all models, by family."""

    counting: list[Score]
    networks: list[Score]
    combined: list[Score]
    """Of the best network: itself, learning on; and its mixtures with the best model that counts."""
    choices: dict[str, float]
    """What was chosen on val to make the combined ones."""

    @property
    def all(self) -> list[Score]:
        """All of them."""
        return [*self.counting, *self.networks, *self.combined]

    def of_characters(self) -> list[Score]:
        """Return the models of characters to diagnose, the best on val first: every run, and the best that counts."""
        strongest = [score for score in self.counting if score.kind == "char" and score.about[STRONGEST]]
        shown = [*strongest, *(score for score in self.networks if score.kind == "char")]
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

    The run that is best on val is mixed with the n-gram model of its kind that is best on
    val, as it is and as it learns on.
    """
    counting = []
    for kind in streams:
        folders = sorted(path for path in layout.scores_of_ngrams(kind).iterdir() if path.is_dir())
        counting += [load_score(folder, folder.name) for folder in folders]
    networks = [load_score(layout.scores_of_run(run), run) for run in runs]

    def on_val(score: Score) -> float:
        return _bits(measure(score.nats["val"], streams[score.kind]["val"]))

    best = min(networks, key=on_val)
    partner = min((score for score in counting if score.kind == best.kind), key=on_val)
    bases, combined = [best], []
    choices: dict[str, float] = {}
    if layout.dynamic_scores_of_run(best.name).exists():
        adapted = load_score(layout.dynamic_scores_of_run(best.name), best.name + DYNAMIC)
        choices |= adapted.about["choices"]
        bases.append(adapted)
        combined.append(adapted)
    if mixtures:
        for base in bases:
            mixture, choices[f"weight of {base.name}"] = best_mixture(base, partner)
            combined.append(mixture)
    return Scores(counting, networks, combined, choices)


def _bits(measured: Mapping[str, Any]) -> float:
    """Return bits per character; infinite where the model gives a token no chance."""
    value = measured["bits_per_character"]
    return float("inf") if value is None else float(value)
