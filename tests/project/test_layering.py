"""What a script imports. `make lint` checks the order of the packages."""

import ast

import pytest

from smoke import ROOT
from stages_by_hand import run_python, succeeded

SCRIPTS = [path for path in sorted((ROOT / "stages").glob("*.py")) if path.stem != "environment"]
# Their stages train networks. To score and generate, only a network of the framework needs it, which is loaded last.
NEEDS_TORCH = {"train", "gradients", "sine"}


@pytest.mark.slow
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
