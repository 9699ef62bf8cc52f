"""The dependencies: what the code imports is declared."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from smoke import ROOT

OWN = {"seqlm", *(path.stem for folder in ("stages", "tools") for path in (ROOT / folder).glob("*.py"))}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def normal(requirements: Iterable[str]) -> set[str]:
    """Return the names of distributions, written as PyPI writes them."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower() for line in requirements}


def declared(*extras: str) -> set[str]:
    """Return the distributions that the project and some of its extras name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = normal(project["dependencies"])
    for extra in extras:
        named |= normal(project["optional-dependencies"][extra])
    return named


def test_every_import_is_declared() -> None:
    for_pipeline = declared("pipeline", "subwords", "torch")
    # Tools are for developers: they may use what tests use.
    allowed = {"src": for_pipeline, "stages": for_pipeline, "tools": for_pipeline | declared("test")}
    distributions, undeclared = packages_distributions(), []
    for folder, names in allowed.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            foreign = {name.partition(".")[0] for name in imported(path)} - OWN - sys.stdlib_module_names
            # A name may belong to several distributions, such as `ruamel`.
            missing = [name for name in foreign if not names & normal(distributions.get(name, ()))]
            undeclared += [f"{path.name}: {name}" for name in missing]
    assert undeclared == []
