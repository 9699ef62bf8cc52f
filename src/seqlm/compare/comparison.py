"""Two revisions' metrics, compared within tolerances."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Metrics = Mapping[str, Mapping[str, Mapping[str, Any]]]

_MEASURE = "bits_per_character"


@dataclass(frozen=True)
class Change:
    """What became of one model on one split; values are bits per character."""

    model: str
    split: str
    before: float | None
    after: float | None
    verdict: str
    """"same", "better", "worse", "new", "gone", "not finite"."""

    @property
    def relative(self) -> float | None:
        """Relative change, positive where the model got worse."""
        if not self.before or self.after is None:
            return None
        return self.after / self.before - 1


def compare_metrics(before: Metrics, after: Metrics, splits: Sequence[str], tolerance: float) -> list[Change]:
    """Return one change for each model and split that either side has, the models of ``before`` first.

    A model is worse where its bits per character rose by more than ``tolerance``, as a
    share; not finite where it had a finite value and has none any more, or never had one.
    """
    changes = []
    for model in dict.fromkeys([*before, *after]):
        for split in splits:
            if split not in before.get(model, {}) and split not in after.get(model, {}):
                continue
            old, new = _value(before, model, split), _value(after, model, split)
            changes.append(Change(model, split, old, new, _judge(before, after, model, split, old, new, tolerance)))
    return changes


def _judge(
    before: Metrics, after: Metrics, model: str, split: str, old: float | None, new: float | None, tolerance: float
) -> str:
    if split not in after.get(model, {}):
        return "gone"
    if new is None:
        was_infinite = split in before.get(model, {}) and old is None
        return "same" if was_infinite else "not finite"
    if old is None:
        return "new" if split not in before.get(model, {}) else "better"
    if new > old * (1 + tolerance):
        return "worse"
    return "better" if new < old * (1 - tolerance) else "same"


def _value(metrics: Metrics, model: str, split: str) -> float | None:
    value = metrics.get(model, {}).get(split, {}).get(_MEASURE)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def failures(changes: Sequence[Change], allow_missing: bool) -> list[Change]:
    """Return the changes that a gate must not let through."""
    bad = {"worse", "not finite"} | (set() if allow_missing else {"gone"})
    return [change for change in changes if change.verdict in bad]


def changes_markdown(changes: Sequence[Change]) -> str:
    """Return the changes as a Markdown table, what changed first; equal rows are counted only."""
    shown = [change for change in changes if change.verdict != "same"]
    lines = ["| model | split | before | after | change | verdict |", "| --- | --- | ---: | ---: | ---: | --- |"]
    for change in shown:
        relative = "" if change.relative is None else f"{change.relative:+.2%}"
        cells = [change.model, change.split, _shown(change.before), _shown(change.after), relative, change.verdict]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", f"{len(changes) - len(shown)} of {len(changes)} values are the same within the tolerance."]
    return "\n".join(lines if shown else lines[3:])


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
