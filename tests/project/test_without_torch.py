"""Only stages whose work needs PyTorch import it: that takes two seconds."""

import ast
import subprocess
import sys

from smoke import ROOT

NEEDS_TORCH = {"train", "gradients"}
"""They train networks. To score and generate, only a network of the framework needs it, which is loaded last."""
STAGES = sorted(path.stem for path in (ROOT / "stages").glob("*.py") if path.stem != "harness")


def library_modules(stage: str) -> list[str]:
    """Return the modules of the library that a stage script imports anywhere, in functions too."""
    nodes = ast.walk(ast.parse((ROOT / "stages" / f"{stage}.py").read_text(encoding="utf-8")))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return sorted(name for name in names if name.startswith("seqlm."))


def test_stages_that_need_no_pytorch_do_not_import_it() -> None:
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert 'torch' not in sys.modules, name"
    )
    names = {name for stage in ("harness", *STAGES) if stage not in NEEDS_TORCH for name in library_modules(stage)}
    result = subprocess.run([sys.executable, "-c", script, *sorted(names)], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
