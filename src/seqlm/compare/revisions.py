"""What revisions of this repository hold: commits, branches, tags, experiments of DVC, and the workspace."""

import json
import subprocess
from pathlib import Path
from typing import Any

from seqlm.compare.comparison import Metrics
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout

WORKSPACE = "workspace"


class Revision:
    """A revision, by any name that ``dvc metrics diff`` takes."""

    def __init__(self, name: str, layout: Layout) -> None:
        """Find the revision. Raises ParamsError where none has this name, or more than one experiment has it."""
        self.name = name
        self._layout = layout
        self._commit = None if name == WORKSPACE else _commit_of(name, layout.root)

    def measures(self) -> Metrics:
        """Return the measures of all models. Raises DataError where there are none, or broken ones."""
        path = self._layout.reports("evaluate", "metrics.json")
        value = self._read(path)
        if value is None:
            raise DataError(f"{self._named(path)}: not there: dvc repro makes it, a commit keeps it")
        if not isinstance(value, dict) or not all(isinstance(splits, dict) for splits in value.values()):
            raise DataError(f"{self._named(path)}: not metrics of this pipeline")
        return value

    def corpus(self) -> dict[str, Any] | None:
        """Return the record of the corpus, None where none is kept. Raises DataError where it is broken."""
        path = self._layout.corpus_record
        value = self._read(path)
        if value is not None and not (isinstance(value, dict) and {"name", "sha256"} <= set(value)):
            raise DataError(f"{self._named(path)}: not the record of a corpus")
        return value

    def _read(self, path: Path) -> Any:
        """Return the value of a JSON file, None where there is no such file. Raises DataError where it is broken."""
        if self._commit is None:
            text = path.read_text(encoding="utf-8") if path.exists() else None
        else:
            inside = path.relative_to(self._layout.root).as_posix()
            found = _git(self._layout.root, "show", f"{self._commit}:./{inside}")
            text = None if found.returncode else found.stdout
        try:
            return None if text is None else json.loads(text)
        except ValueError as error:
            raise DataError(f"{self._named(path)}: not JSON") from error

    def _named(self, path: Path) -> str:
        where = "in the workspace" if self._commit is None else f"at {self.name}"
        return f"{path.relative_to(self._layout.root).as_posix()} {where}"


def _commit_of(name: str, folder: Path) -> str:
    """Return the commit of a Git revision or, where there is none of this name, of an experiment, as DVC does."""
    known = _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not known.returncode:
        return known.stdout.strip()
    found = _experiments(name, folder)
    if len(found) > 1:  # of one name, that which started from here is meant
        head = _git(folder, "rev-parse", "HEAD").stdout.strip()
        found = {base: commit for base, commit in found.items() if base == head} or found
    if not found:
        raise ParamsError(
            f"{name!r}: not a Git revision nor an experiment of this repository: see git log, dvc exp list"
        )
    if len(found) > 1:
        commits = ", ".join(f"{commit[:7]} (from {base[:7]})" for base, commit in found.items())
        raise ParamsError(f"{name!r}: experiments of several commits have this name: choose one of {commits}")
    return next(iter(found.values()))


def _experiments(name: str, folder: Path) -> dict[str, str]:
    """Return the commits of the experiments of this name by the commits that they started from."""
    found = {}
    for line in _git(folder, "for-each-ref", "--format=%(objectname) %(refname)", "refs/exps").stdout.splitlines():
        commit, _, reference = line.partition(" ")
        # refs/exps/AB/CDEF.../NAME, where ABCDEF... is the commit that it started from.
        parts = reference.split("/")
        if len(parts) == 5 and parts[4] == name and len(parts[2]) == 2:
            found[parts[2] + parts[3]] = commit
    return found


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
