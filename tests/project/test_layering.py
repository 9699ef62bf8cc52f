"""The layout of the project: names, and what a script imports. `make lint` checks the order of the packages."""

import ast
import sys

from ruamel.yaml import YAML

from smoke import ROOT
from stages_by_hand import run_python, succeeded

SOURCE, TESTS = ROOT / "src" / "seqlm", ROOT / "tests"
SCRIPTS = [path for path in sorted((ROOT / "stages").glob("*.py")) if path.stem != "harness"]
# Their stages train networks. To score and generate, only a network of the framework needs it, which is loaded last.
NEEDS_TORCH = {"train", "gradients", "sine"}


def test_every_module_has_a_docstring_and_an_init_file_has_nothing_else() -> None:
    # So a stage need not declare the __init__.py files of the packages around its dependencies.
    for path in SOURCE.rglob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(module), path
        assert path.name != "__init__.py" or path.parent == SOURCE or len(module.body) == 1, path


def test_every_stage_has_one_script_package_section_and_folder_of_reports_and_tests() -> None:
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    sections = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    scripts = {path.stem for path in SCRIPTS}
    assert {name.partition("-")[0] for name in stages} == scripts  # score-ngrams is a part of score
    assert not scripts & set(sys.stdlib_module_names)
    assert {script for script in scripts if script not in sections} == {"configure", "evaluate", "report"}
    for name, stage in stages.items():
        script, body = name.partition("-")[0], stage.get("do", stage)
        assert f"stages/{script}.py" in body["cmd"]
        outs = [
            out if isinstance(out, str) else next(iter(out))
            for kind in ("outs", "metrics", "plots")
            for out in body.get(kind, [])
        ]
        # The page, its figures, the main table as text and the parity table belong to the report.
        outside = {out for out in outs if out.startswith("reports/") and not out.startswith(f"reports/{script}/")}
        assert script == "report" or not outside
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert scripts <= packages
    assert {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")} == {*packages, "project"}


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
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seqlm.")
    }
    succeeded(run_python(script, *sorted(names)))
