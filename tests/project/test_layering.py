"""Imports go one way, and the library knows neither DVC nor click nor the stages."""

import ast
from pathlib import Path

import pytest

from workspace import ROOT

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


UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "copyreg"}
UNSAFE_CALLS = {"read_pickle", "to_pickle", "unsafe_load", "full_load", "eval", "exec"}


def ways_to_run_stored_code(source: str) -> list[str]:
    """Return what in a program could load a pickle, or run what a file holds."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            found += [f"torch.{alias.name}" for alias in node.names if alias.name in ("load", "save")]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            kind = {word.arg: ast.unparse(word.value) for word in node.keywords}
            unsafe_yaml = called.endswith("YAML") and kind.get("typ") in ("'unsafe'", '"unsafe"')
            # NumPy may unpickle unless it is told not to; so each call says so.
            lax = called in ("np.load", "numpy.load", "np.save", "np.savez", "np.savez_compressed")
            lax = lax and kind.get("allow_pickle") != "False"
            if (
                called in ("torch.load", "torch.save", "torch.jit.load", "yaml.load")
                or (called.rpartition(".")[2] in UNSAFE_CALLS and not called.endswith(".eval"))
                or unsafe_yaml
                or lax
            ):
                found.append(called)
    return found


@pytest.mark.parametrize(
    "way",
    [
        "import pickle", "from joblib import load", "import dill as d", "import marshal", "import shelve",
        "from torch import load", "torch.load(path)", "torch.load(path, weights_only=True)", "np.load(path)",
        "np.load(path, allow_pickle=True)", "np.load(path, mmap_mode='r', allow_pickle=flag)", "pd.read_pickle(path)",
        "frame.to_pickle(path)", "yaml.load(text)", "YAML(typ='unsafe')", "eval(text)", "exec(text)",
    ],
)  # fmt: skip
def test_every_way_to_run_stored_code_is_found(way: str) -> None:
    assert ways_to_run_stored_code(way)


def test_nothing_is_unpickled() -> None:
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "stages").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert ways_to_run_stored_code(path.read_text()) == [], path
