"""The results of two revisions of this repository, compared within tolerances.

A revision is a commit or the workspace.
"""

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout

Metrics = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Metrics by model and split."""
CorpusRecord = Mapping[str, Any] | None
"""What the download stage writes about a corpus; None if that was not kept."""


BEST_IS_LAST = "the last epoch is the best one"
"""Why a run no longer has a row of its best epoch."""


@dataclass(frozen=True)
class Change:
    """The change of one model on one split, in bits per character."""

    model: str
    split: str
    before: float | None
    after: float | None
    verdict: str
    """"same", "better", "worse", "new", "gone", "not finite", or :data:`BEST_IS_LAST`."""


def compare_metrics(before: Metrics, after: Metrics, splits: Sequence[str], tolerance: float) -> list[Change]:
    """Return one change for each model and split that either side has, the models of ``before`` first.

    A model is worse if its bits per character rose by more than ``tolerance``, relatively, and not finite if it had a
    finite value, or none, and has one no longer.
    """
    changes = []
    runs_at_best = {f"{model}@best" for model in after}
    for model, split in product(dict.fromkeys([*before, *after]), splits):
        old, new = (metrics.get(model, {}).get(split) for metrics in (before, after))
        if old is not None or new is not None:
            verdict = _verdict(old, new, tolerance)
            if verdict == "gone" and model in runs_at_best:
                verdict = BEST_IS_LAST
            changes.append(Change(model, split, _bits(old), _bits(new), verdict))
    return changes


def _verdict(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, tolerance: float) -> str:
    before, after = _bits(old), _bits(new)
    if new is None:
        return "gone"
    if after is None:
        return "same" if old is not None and before is None else "not finite"
    if before is None:
        return "new" if old is None else "better"
    if after > before * (1 + tolerance):
        return "worse"
    return "better" if after < before * (1 - tolerance) else "same"


def _bits(metrics: Mapping[str, Any] | None) -> float | None:
    value = (metrics or {}).get("bits_per_character")
    return None if value is None or not math.isfinite(value) else float(value)


def failures(changes: Sequence[Change], allow_missing: bool) -> list[Change]:
    """Return the changes that fail the comparison."""
    bad = {"worse", "not finite"} | (set() if allow_missing else {"gone"})
    return [change for change in changes if change.verdict in bad]


def changes_markdown(changes: Sequence[Change]) -> str:
    """Return the changes as a Markdown table with a row for each model; models that are the same are only counted."""
    splits = list(dict.fromkeys(change.split for change in changes))
    of_model = {
        model: {change.split: _cell(change) for change in changes if change.model == model}
        for model in dict.fromkeys(change.model for change in changes if change.verdict != "same")
    }
    rows = [["model", *splits], ["---"] * (1 + len(splits))]
    rows += [[model, *(cells.get(split, "") for split in splits)] for model, cells in of_model.items()]
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    num_same = sum(change.verdict == "same" for change in changes)
    summary = f"{num_same} of {len(changes)} values are the same within the tolerance."
    return "\n".join([*lines, "", summary]) if of_model else summary


def _cell(change: Change) -> str:
    """Return the bits before and after, the relative change, and what it means."""
    before, after = ("–" if value is None else f"{value:.4f}" for value in (change.before, change.after))
    relative = f"{change.after / change.before - 1:+.2%}, " if change.before and change.after is not None else ""
    return f"{before} → {after}, {relative}{change.verdict}"


def are_other_corpora(before: CorpusRecord, after: CorpusRecord) -> bool:
    """Whether two corpora are known to differ. Equal texts are one corpus, whatever their names.

    Bits per character of different texts cannot be compared.
    """
    return before is not None and after is not None and before["sha256"] != after["sha256"]


def corpora_sentence(before: CorpusRecord, after: CorpusRecord) -> str:
    """Return a sentence about the two corpora."""
    both = f"before {_describe(before)}, after {_describe(after)}"
    if before is None or after is None:
        return f"Whether both are of one corpus is not known: {both}."
    return f"Other corpora: {both}." if are_other_corpora(before, after) else f"One corpus: {_describe(after)}."


def _describe(record: CorpusRecord) -> str:
    if record is None:
        return "not kept"
    fallback = f", in place of {record['requested']}" if record.get("fallback") else ""
    return f"{record['name']} (SHA-256 {str(record['sha256'])[:8]}){fallback}"


@dataclass(frozen=True)
class Revision:
    """The results of a revision."""

    name: str
    commit: str | None
    """None for the workspace."""
    layout: Layout

    def metrics(self) -> Metrics:
        """Return the metrics of all models. Raises DataError if there are none."""
        path = self.layout.reports("evaluate", "metrics.json")
        if (value := self._read(path)) is None:
            raise DataError(f"{self._describe(path)}: missing: run dvc repro, and commit its results")
        return value  # type: ignore[no-any-return]

    def corpus(self) -> CorpusRecord:
        """Return the record of the corpus, None if none was kept."""
        return self._read(self.layout.corpus_record)  # type: ignore[no-any-return]

    def _read(self, path: Path) -> Any:
        """Return the value of a JSON file, None if there is no such file. Raises DataError if it is broken."""
        if self.commit is None:
            content = path.read_bytes() if path.exists() else None
        else:
            show = ["git", "show", f"{self.commit}:./{path.relative_to(self.layout.root).as_posix()}"]
            shown = subprocess.run(show, cwd=self.layout.root, capture_output=True, check=False)
            content = None if shown.returncode else shown.stdout
        try:
            return None if content is None else json.loads(content)
        except ValueError as error:
            raise DataError(f"{self._describe(path)}: not JSON") from error

    def _describe(self, path: Path) -> str:
        where = "in the workspace" if self.commit is None else f"at {self.name}"
        return f"{path.relative_to(self.layout.root).as_posix()} {where}"
