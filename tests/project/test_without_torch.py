"""Only stages whose work needs PyTorch import it: that takes two seconds."""

import ast
import subprocess
import sys

import pytest

from smoke import ROOT

NEEDS_TORCH = {"train", "gradients"}
"""They train networks. To score and generate, only a network of the framework needs it, which is loaded last."""
STAGES = sorted(path.stem for path in (ROOT / "stages").glob("*.py") if path.stem != "harness")


def library_modules(stage: str) -> list[str]:
    """Return the modules of the library that a stage script imports anywhere, in functions too."""
    nodes = ast.walk(ast.parse((ROOT / "stages" / f"{stage}.py").read_text(encoding="utf-8")))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return sorted(name for name in names if name.startswith("seqlm."))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in NEEDS_TORCH])
def test_a_stage_that_needs_no_pytorch_does_not_import_it(stage: str) -> None:
    script = (
        "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", script, *library_modules("harness"), *library_modules(stage)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed == "False\n"
