"""Imports go one way, and the library knows neither DVC nor click nor the stages."""

import ast
from pathlib import Path

import pytest

from conftest import ROOT

SOURCE = ROOT / "src" / "seqlm"
# A module may import from its own layer and from those to the right of it.
LAYERS = [
    {"page", "parity"},
    {"evaluation_report"},
    {"ranking", "uncertainty"},
    {"scoring", "writers", "sine_study", "own_text"},
    {"diagnostics"},
    {"training", "evaluation", "samples", "generation", "surprisal", "checkpoints", "spelling", "gradients"},
    {"figures"},
    {
        "comparison",
        "metrics",
        "ngrams",
        "rnn",
        "sine",
        "minibatches",
        "preprocessing",
        "corpora",
        "fetching",
        "devices",
        "ranks",
        "ghosts",
    },
    {"vocab", "text"},
    {"params"},
    {"files"},
    {"errors"},
]
FOREIGN = {"dvc", "click", "stages", "harness"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def layer(room: str) -> int:
    return next(index for index, rooms in enumerate(LAYERS) if room in rooms)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    names = imported(path)
    assert not FOREIGN & {name.partition(".")[0] for name in names}
    for name in names:
        if name.startswith("seqlm."):
            room = name.split(".")[1]
            assert layer(room) >= layer(room_of(path)), f"{path.name} imports {name}, which stands above it"


def test_every_stage_is_one_script_one_section_one_folder_and_one_test() -> None:
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")} - {"harness", "compare"}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}
    assert scripts <= tests
    for script in scripts:
        assert len((ROOT / "stages" / f"{script}.py").read_text().splitlines()) <= 150


def test_no_stage_bears_the_name_of_a_standard_module() -> None:
    import sys

    assert not {path.stem for path in (ROOT / "stages").glob("*.py")} & set(sys.stdlib_module_names)


def test_nothing_is_unpickled() -> None:
    ways = ("pickle", "torch.load", "allow_pickle=True", "joblib", "shelve", "marshal", "read_pickle", "yaml.load(")
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "stages").glob("*.py")]:
        text = path.read_text().replace("without pickling", "").replace("allow_pickle=False", "")
        assert not [way for way in ways if way in text], path
