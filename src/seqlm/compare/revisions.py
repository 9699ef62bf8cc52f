"""The results in revisions of this repository: commits, branches, tags, experiments of DVC, and the workspace."""

import json
import subprocess
from pathlib import Path
from typing import Any

from seqlm.compare.comparison import Metrics
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout

_WORKSPACE = "workspace"


class Revision:
    """A revision, by any name that ``dvc metrics diff`` takes."""

    def __init__(self, name: str, layout: Layout) -> None:
        """Find the revision. Raises ParamsError if none has this name, or more than one experiment has it."""
        self._name, self._layout = name, layout
        self._commit = None if name == _WORKSPACE else _commit_of(name, layout.root)

    def metrics(self) -> Metrics:
        """Return the metrics of all models. Raises DataError if there are none, or broken ones."""
        path = self._layout.reports("evaluate", "metrics.json")
        value = self._read(path)
        if value is None:
            raise DataError(f"{self._describe(path)}: missing: run dvc repro, and commit its results")
        if not isinstance(value, dict) or not all(isinstance(splits, dict) for splits in value.values()):
            raise DataError(f"{self._describe(path)}: not metrics of this pipeline")
        return value

    def corpus(self) -> dict[str, Any] | None:
        """Return the record of the corpus, None if none was kept. Raises DataError if it is broken."""
        path = self._layout.corpus_record
        value = self._read(path)
        if value is not None and not (isinstance(value, dict) and {"name", "sha256"} <= set(value)):
            raise DataError(f"{self._describe(path)}: not the record of a corpus")
        return value

    def _read(self, path: Path) -> Any:
        """Return the value of a JSON file, None if there is no such file. Raises DataError if it is broken."""
        if self._commit is None:
            text = path.read_text(encoding="utf-8") if path.exists() else None
        else:
            inside = path.relative_to(self._layout.root).as_posix()
            shown = _git(self._layout.root, "show", f"{self._commit}:./{inside}")
            text = None if shown.returncode else shown.stdout
        try:
            return None if text is None else json.loads(text)
        except ValueError as error:
            raise DataError(f"{self._describe(path)}: not JSON") from error

    def _describe(self, path: Path) -> str:
        where = "in the workspace" if self._commit is None else f"at {self._name}"
        return f"{path.relative_to(self._layout.root).as_posix()} {where}"


def _commit_of(name: str, folder: Path) -> str:
    """Return the commit of a Git revision or, if there is none of this name, of an experiment, as DVC does."""
    known = _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not known.returncode:
        return known.stdout.strip()
    commits = _experiments(name, folder)
    head = _git(folder, "rev-parse", "HEAD").stdout.strip()
    if len(commits) > 1 and head in commits:  # of experiments with one name, the one that started from here is meant
        return commits[head]
    if not commits:
        raise ParamsError(f"{name!r}: neither a Git revision nor an experiment here: see git log, dvc exp list")
    if len(commits) > 1:
        choices = ", ".join(f"{commit[:7]} (from {base[:7]})" for base, commit in commits.items())
        raise ParamsError(f"{name!r}: experiments of several commits have this name: choose one of {choices}")
    return next(iter(commits.values()))


def _experiments(name: str, folder: Path) -> dict[str, str]:
    """Return the commits of the experiments of this name by the commits that they started from."""
    commits = {}
    for line in _git(folder, "for-each-ref", "--format=%(objectname) %(refname)", "refs/exps").stdout.splitlines():
        commit, _, reference = line.partition(" ")
        # refs/exps/AB/CDEF.../NAME, where ABCDEF... is the commit that it started from.
        parts = reference.split("/")
        if len(parts) == 5 and parts[4] == name and len(parts[2]) == 2:
            commits[parts[2] + parts[3]] = commit
    return commits


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
