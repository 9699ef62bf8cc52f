"""The layout of the project: names, the direction of imports, and what code may not do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from smoke import ROOT
from stages_by_hand import run_python, succeeded

SOURCE, STAGES, TESTS = ROOT / "src" / "seqlm", ROOT / "stages", ROOT / "tests"
MODULES = sorted(SOURCE.rglob("*.py"))
SCRIPTS = sorted(STAGES.glob("*.py"))
# A package imports from the foundations and from the packages before it in the pipeline.
FOUNDATIONS = ["core", "networks"]
PIPELINE = [
    "download", "preprocess", "vocab", "ngrams", "sine", "train", "heldout", "score", "evaluate", "models", "generate",
    "gradients", "report",
]  # fmt: skip
# The models that the stages before have made; no stage of its own.
STAGELESS = {"models"}
# No package imports these.
BESIDE = {"configure": {*FOUNDATIONS, *PIPELINE}}
ALLOWED = {
    **{name: set(FOUNDATIONS[: place + 1]) for place, name in enumerate(FOUNDATIONS)},
    **{name: {*FOUNDATIONS, *PIPELINE[: place + 1]} for place, name in enumerate(PIPELINE)},
    **{name: {name, *others} for name, others in BESIDE.items()},
    # What users import, and the command line of an installed package.
    "__init__.py": {"core", "models"},
    "__main__.py": {"core", "models"},
}
FOREIGN = {"dvc", "click", "stages", "harness"}
# Their stages train networks. To score and generate, only a network of the framework needs it, which is loaded last.
NEEDS_TORCH = {"train", "gradients", "sine"}


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
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_every_package_has_its_place_in_the_order() -> None:
    assert {path.name for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"} == {*ALLOWED}


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


def test_every_stage_has_one_script_package_section_and_folder_of_reports_and_tests() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    sections = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    scripts = {path.stem for path in SCRIPTS} - {"harness"}
    # One script scores runs, n-gram models, and words as characters; two revisions are compared by hand.
    assert {*stages} - {"score-ngrams", "score-word-to-char"} == scripts
    assert not scripts & set(sys.stdlib_module_names)
    for script in scripts:
        assert (SOURCE / script / "__init__.py").is_file()
        assert (SOURCE / script / "settings.py").is_file()
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


def test_only_stages_that_need_pytorch_import_it() -> None:
    # That takes two seconds.
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name"
    )
    names = {
        node.module
        for path in SCRIPTS
        if path.stem not in NEEDS_TORCH
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seqlm.")
    }
    succeeded(run_python(script, *sorted(names)))
