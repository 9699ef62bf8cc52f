"""The house: where things stand and how they are named, and that imports go one way."""

import ast
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from smoke import ROOT

SOURCE, STAGES, TESTS = ROOT / "src" / "seqlm", ROOT / "stages", ROOT / "tests"
# In the order of the pipeline: a package imports from the two foundations and from those before it.
PACKAGES = [
    "download", "preprocess", "vocab", "ngrams", "sine", "train", "heldout", "score", "evaluate", "generate",
    "gradients", "report",
]  # fmt: skip
FOUNDATIONS = ["core", "rnn"]
# Of the settings of all packages, and of two revisions' results: nobody imports these.
BESIDE = {"configure": {*FOUNDATIONS, *PACKAGES, "compare"}, "compare": {"core"}}
ALLOWED = {
    **{name: set(FOUNDATIONS[: place + 1]) for place, name in enumerate(FOUNDATIONS)},
    **{name: {*FOUNDATIONS, *PACKAGES[: place + 1]} for place, name in enumerate(PACKAGES)},
    **{name: {name, *others} for name, others in BESIDE.items()},
}
FOREIGN = {"dvc", "click", "stages", "harness"}
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_LINES, MAX_LINES_OF_A_SCRIPT = 300, 80


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def of_library(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=of_library)
def test_imports_go_one_way(path: Path) -> None:
    names = imported(path)
    assert not FOREIGN & {name.partition(".")[0] for name in names}
    inside = {name for name in names if name.partition(".")[0] == "seqlm"}
    for name in inside:
        package = name.split(".")[1]
        assert package in ALLOWED[package_of(path)], f"{of_library(path)} imports {name}, which stands above it"
        assert package_of(path) != "configure" or package == "configure" or ".settings." in name or package == "core"


def test_every_package_has_its_place_in_the_order_and_stands_alone() -> None:
    # 15 packages and the library's own file.
    assert {path.name for path in SOURCE.iterdir()} - {"__pycache__"} == {"__init__.py", *ALLOWED}


def classes_of_models() -> set[str]:
    """Return the names of the classes that are networks, and of those that predict the next token by counts."""
    classes = [node for path in MODULES for node in ast.walk(syntax(path)) if isinstance(node, ast.ClassDef)]
    bases = {node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases} for node in classes}
    networks = {"Module", "Network", "NGramModel"}
    while more := {name for name, its_bases in bases.items() if its_bases & networks} - networks:
        networks |= more
    counting = {
        node.name
        for node in classes
        if any(isinstance(inner, ast.FunctionDef) and inner.name == "next_distribution" for inner in node.body)
    }
    return networks | counting


def types_asked_for(source: str) -> set[str]:
    """Return the names of the types that a program asks for with ``isinstance``, ``type`` or a pattern."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = node.args[1:]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for expression in asked:
            names = (part for part in ast.walk(expression) if isinstance(part, ast.Name | ast.Attribute))
            found |= {ast.unparse(part).rpartition(".")[2] for part in names}
    return found


@pytest.mark.parametrize(
    "way",
    [
        "isinstance(model, ScratchRNN)", "isinstance(model, (int, scratch.ScratchRNN))", "type(model) is ScratchRNN",
        "isinstance(model, int | ScratchRNN)", "issubclass(kind, ScratchRNN)", "type(model) in (ScratchRNN, int)",
        "match model:\n    case ScratchRNN():\n        pass",
    ],
)  # fmt: skip
def test_every_way_to_ask_for_a_type_is_found(way: str) -> None:
    assert "ScratchRNN" in types_asked_for(way)
    assert "ScratchRNN" not in types_asked_for("model = ScratchRNN(28, 256)")


def test_nobody_asks_a_model_for_its_type() -> None:
    models = classes_of_models()
    assert {"ScratchRNN", "FrameworkRNN", "Network", "KneserNey", "NGramModel"} <= models
    for path in [*MODULES, *STAGES.glob("*.py")]:
        if path != SOURCE / "rnn" / "building.py":
            assert not types_asked_for(path.read_text(encoding="utf-8")) & models, path


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.py")), ids=of_library)
def test_a_package_s_own_file_is_a_docstring_alone(path: Path) -> None:
    # So no stage needs to declare it, and importing a package does nothing.
    (statement,) = syntax(path).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)
    assert isinstance(statement.value.value, str)


@pytest.mark.parametrize("path", MODULES, ids=of_library)
def test_a_module_says_what_it_is_for_and_is_no_longer_than_a_sitting(path: Path) -> None:
    assert ast.get_docstring(syntax(path))
    assert len(lines(path)) <= MAX_LINES or "compiled" in path.parts


def test_every_stage_is_one_script_one_package_one_section_one_folder_and_one_folder_of_tests() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    sections = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    scripts = {path.stem for path in STAGES.glob("*.py")} - {"harness"}
    # The models that count are scored by the script that scores runs; two revisions are compared by hand.
    assert {*stages} - {"score-ngrams", "score-word-to-char"} == scripts - {"compare"}
    for script in scripts:
        assert (SOURCE / script / "__init__.py").is_file()
        assert list((TESTS / script).glob("test_*.py")), f"tests/{script} has no tests"
        assert (SOURCE / script / "settings.py").is_file()
        assert script in sections or script == "configure"
    for name, stage in stages.items():
        body = stage.get("do", stage)
        script = name.partition("-")[0]
        assert f"stages/{script}.py" in body["cmd"]
        outs = [out if isinstance(out, str) else next(iter(out)) for kind in ("outs", "metrics", "plots")
                for out in body.get(kind, [])]  # fmt: skip
        reports = {out for out in outs if out.startswith("reports/")}
        # The page, its figures, the main table as text and the parity table are all of the report.
        assert name == "report" or all(out.startswith(f"reports/{script}/") for out in reports), reports


def test_every_folder_of_tests_is_of_a_package() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert folders == {*ALLOWED, "project"}


def test_stage_scripts_are_thin() -> None:
    for path in STAGES.glob("*.py"):
        assert len(lines(path)) <= MAX_LINES_OF_A_SCRIPT or path.stem == "harness", path


def test_the_pipeline_can_be_read_in_a_minute() -> None:
    text = lines(ROOT / "dvc.yaml")
    assert len(text) <= 330
    assert max(map(len, text)) <= 120
    # Top-level plots may stand behind the stages.
    order = [*YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]]
    places = [order.index(name) for name in PACKAGES]
    assert places == sorted(places)


def test_no_stage_bears_the_name_of_a_standard_module() -> None:
    assert not {path.stem for path in STAGES.glob("*.py")} & set(sys.stdlib_module_names)


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
    for path in [*MODULES, *STAGES.glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert ways_to_run_stored_code(path.read_text()) == [], path
