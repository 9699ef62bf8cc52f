"""The layout of the project: names, the direction of imports, and what code may not do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from smoke import ROOT

SOURCE, STAGES, TESTS = ROOT / "src" / "seqlm", ROOT / "stages", ROOT / "tests"
MODULES = sorted(SOURCE.rglob("*.py"))
SCRIPTS = sorted(STAGES.glob("*.py"))
# A package imports from the foundations and from the packages before it in the pipeline.
FOUNDATIONS = ["core", "rnn"]
PIPELINE = [
    "download", "preprocess", "vocab", "ngrams", "sine", "train", "heldout", "score", "evaluate", "models", "generate",
    "gradients", "report",
]  # fmt: skip
# The models that the stages before have made; no stage of its own.
STAGELESS = {"models"}
# No package imports these.
BESIDE = {"configure": {*FOUNDATIONS, *PIPELINE, "revisions"}, "revisions": {"core"}}
ALLOWED = {
    **{name: set(FOUNDATIONS[: place + 1]) for place, name in enumerate(FOUNDATIONS)},
    **{name: {*FOUNDATIONS, *PIPELINE[: place + 1]} for place, name in enumerate(PIPELINE)},
    **{name: {name, *others} for name, others in BESIDE.items()},
    # What users import, and the command line of an installed package.
    "__init__.py": {"core", "models"},
    "__main__.py": {"core", "models"},
}
FOREIGN = {"dvc", "click", "stages", "harness"}


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> set[str]:
    """Return the dotted names that a module imports anywhere: in functions and for type checkers too."""
    names: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def name_of(path: Path) -> str:
    """Return the dotted name of a module of the library."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_every_package_has_its_place_in_the_order() -> None:
    assert {path.name for path in SOURCE.iterdir()} - {"__pycache__"} == {*ALLOWED}


def test_imports_go_one_way() -> None:
    wrong = []
    for path in MODULES:
        own = path.relative_to(SOURCE).parts[0]
        for name in imported(path):
            root, _, inner = name.partition(".")
            package = inner.partition(".")[0]
            if (
                root in FOREIGN
                or root == ""  # a relative import
                or (root == "seqlm" and package not in ALLOWED[own])
                # The settings of all packages meet in configure, and nothing else of them.
                or (root == "seqlm" and own == "configure" != package != "core" and ".settings." not in name)
            ):
                wrong.append(f"{name_of(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_no_imports_form_a_cycle() -> None:
    modules = {name_of(path) for path in MODULES}
    graph = {
        name_of(path): {name if name in modules else name.rpartition(".")[0] for name in imported(path)} & modules
        for path in MODULES
    }
    cycles = []
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
            break
        except graphlib.CycleError as error:
            # Each module of a cycle imports the one before it, and the first is also the last.
            cycle = error.args[1]
            cycles.append(" <- ".join(cycle))
            graph[cycle[1]].discard(cycle[0])
    assert not cycles, "\n".join(cycles)


def test_every_module_has_a_docstring_and_an_init_file_has_nothing_else() -> None:
    # So a stage need not declare the __init__.py files of the packages around its dependencies.
    wrong = [
        name_of(path)
        for path in MODULES
        if not ast.get_docstring(syntax(path))
        or (path.name == "__init__.py" and path.parent != SOURCE and len(syntax(path).body) > 1)
    ]
    assert not wrong


def classes_of_models() -> set[str]:
    """Return the names of the classes of networks and of n-gram models."""
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


def types_asked_for(tree: ast.Module) -> set[str]:
    """Return the names of the types that a program asks for with ``isinstance``, ``type`` or a pattern."""
    found: set[str] = set()
    for node in ast.walk(tree):
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


def test_every_way_to_ask_for_a_type_is_found() -> None:
    for way in (
        "isinstance(model, ScratchRNN)", "isinstance(model, (int, scratch.ScratchRNN))", "type(model) is ScratchRNN",
        "isinstance(model, int | ScratchRNN)", "issubclass(kind, ScratchRNN)", "type(model) in (ScratchRNN, int)",
        "match model:\n    case ScratchRNN():\n        pass",
    ):  # fmt: skip
        assert "ScratchRNN" in types_asked_for(ast.parse(way)), way
    assert "ScratchRNN" not in types_asked_for(ast.parse("model = ScratchRNN(28, 256)"))


def test_no_code_asks_a_model_for_its_type() -> None:
    models = classes_of_models()
    assert {"ScratchRNN", "FrameworkRNN", "Network", "KneserNey", "NGramModel"} <= models
    paths = {*MODULES, *SCRIPTS} - {SOURCE / "rnn" / "building.py"}
    asked = {str(path): types_asked_for(syntax(path)) & models for path in paths}
    assert {path: names for path, names in asked.items() if names} == {}


def test_every_stage_has_one_script_package_section_and_folder_of_reports_and_tests() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    sections = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    scripts = {path.stem for path in SCRIPTS} - {"harness"}
    # One script scores runs, n-gram models, and words as characters; revisions are compared by hand.
    assert {*stages} - {"score-ngrams", "score-word-to-char"} == scripts - {"compare"}
    assert not scripts & set(sys.stdlib_module_names)
    for script in scripts:
        # seqlm.compare is a function.
        package = SOURCE / ("revisions" if script == "compare" else script)
        assert (package / "__init__.py").is_file()
        assert (package / "settings.py").is_file()
        assert script in sections or script == "configure"
    for name, stage in stages.items():
        body = stage.get("do", stage)
        script = name.partition("-")[0]
        assert f"stages/{script}.py" in body["cmd"]
        outs = [
            out if isinstance(out, str) else next(iter(out))
            for kind in ("outs", "metrics", "plots")
            for out in body.get(kind, [])
        ]
        # The page, its figures, the main table as text and the parity table belong to the report.
        outside = {out for out in outs if out.startswith("reports/") and not out.startswith(f"reports/{script}/")}
        assert name == "report" or not outside
    places = [[*stages].index(name) for name in PIPELINE if name not in STAGELESS]
    assert places == sorted(places), "dvc.yaml lists the stages in another order"


def test_every_folder_of_tests_belongs_to_a_package() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert folders == {*ALLOWED, "project"} - {"__init__.py", "__main__.py"}


UNSAFE_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "copyreg"}
UNSAFE_CALLS = {"read_pickle", "to_pickle", "unsafe_load", "full_load", "eval", "exec"}


def unsafe_code(tree: ast.Module) -> list[str]:
    """Return what in a program could load a pickle or run the content of a file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE_MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            found += [f"torch.{alias.name}" for alias in node.names if alias.name in ("load", "save")]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
            # NumPy may unpickle unless a call forbids it.
            is_lax = called in ("np.load", "numpy.load", "np.save", "np.savez", "np.savez_compressed")
            if (
                called in ("torch.load", "torch.save", "torch.jit.load", "yaml.load")
                or (called.rpartition(".")[2] in UNSAFE_CALLS and not called.endswith(".eval"))
                or (called.endswith("YAML") and keywords.get("typ") in ("'unsafe'", '"unsafe"'))
                or (is_lax and keywords.get("allow_pickle") != "False")
            ):
                found.append(called)
    return found


def test_every_way_to_run_stored_code_is_found() -> None:
    for way in (
        "import pickle", "from joblib import load", "import dill as d", "import marshal", "import shelve",
        "from torch import load", "torch.load(path)", "torch.load(path, weights_only=True)", "np.load(path)",
        "np.load(path, allow_pickle=True)", "np.load(path, mmap_mode='r', allow_pickle=flag)", "pd.read_pickle(path)",
        "frame.to_pickle(path)", "yaml.load(text)", "YAML(typ='unsafe')", "eval(text)", "exec(text)",
    ):  # fmt: skip
        assert unsafe_code(ast.parse(way)), way


def test_no_code_unpickles_or_runs_stored_code() -> None:
    paths = [*MODULES, *SCRIPTS, *(ROOT / "benchmarks").glob("*.py")]
    found = {str(path): unsafe_code(syntax(path)) for path in paths}
    assert {path: ways for path, ways in found.items() if ways} == {}
