"""Fingerprints of the code of stages: what changes them, and what does not."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from seqlm.networks.architectures import ARCHITECTURES
from seqlm.pipeline.configure.fingerprints import SHARED_SCRIPTS, fingerprints
from smoke import ROOT

SCRIPT = """
import click
from seqlm.tools import halve

@click.option("--size", default=1, help="The size.")
def main(size):
    from seqlm.models import fit
    click.echo(f"size {size}")
    return fit(halve(size))
"""
MODELS = """
'''Models.'''
from typing import TYPE_CHECKING
from seqlm.core.errors import ParamsError
if TYPE_CHECKING:
    from seqlm.types import Number

def fit(value):
    if value < 0:
        raise ParamsError(f"{value}: must not be negative")
    return value + 1  # of course
"""


def modules(text: str) -> dict[str, str]:
    return {line.split()[1]: line.split()[0] for line in text.splitlines()}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    files = {
        "stages/fit.py": SCRIPT, "src/seqlm/models.py": MODELS, "src/seqlm/tools.py": "def halve(x): return x / 2",
        "src/seqlm/other.py": "KIND = 1", "src/seqlm/types.py": "Number = float",
        "src/seqlm/core/errors.py": "class ParamsError(Exception): pass",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def test_code_is_what_a_script_imports_but_errors_and_types(sources: Path) -> None:
    found = fingerprints(sources, {"mine": "seqlm.other"})
    assert set(modules(found["fit.txt"])) == {"stages.fit", "seqlm.models", "seqlm.tools"}
    assert set(modules(found["runs/mine.txt"])) == {"seqlm.other"}


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("stages/fit.py", "The size.", "Size.", False),
        ("stages/fit.py", "size {size}", "{size:.3f}!", False),
        ("stages/fit.py", "default=1", "default=2", True),
        ("src/seqlm/models.py", "Models.", "All models.", False),
        ("src/seqlm/models.py", "  # of course", "", False),
        ("src/seqlm/models.py", "must not be negative", "is negative", False),
        ("src/seqlm/models.py", "value < 0", "value < 1", True),
        ("src/seqlm/models.py", "    return value", "\n\n    return (value)", False),
        ("src/seqlm/tools.py", "x / 2", "x / 2.0", True),
        ("src/seqlm/core/errors.py", "pass", "exit_code = 2", False),
        ("src/seqlm/types.py", "float", "int", False),
    ],
)
def test_only_what_can_change_a_number_changes_a_fingerprint(
    file: str, old: str, new: str, changes: bool, sources: Path
) -> None:
    before, path = fingerprints(sources, {}), sources / file
    path.write_text(path.read_text().replace(old, new))
    assert (fingerprints(sources, {}) != before) == changes


def test_the_script_that_stages_share_only_dispatches() -> None:
    # Their fingerprints leave it out, so it may do nothing for them but call the modules that do their work.
    tree = ast.parse((ROOT / "stages" / "score.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    work = {
        name
        for name in imported
        if name.startswith("seqlm.") and not name.endswith((".settings", ".layout", ".errors", ".kinds", ".harness"))
    }
    assert work == set(SHARED_SCRIPTS.values())


def test_a_run_depends_on_its_own_kind_of_network_and_on_no_other() -> None:
    found = fingerprints(ROOT, {"mine": ARCHITECTURES["transformer"].network.partition(":")[0]})
    assert "seqlm.networks.transformer" in modules(found["runs/mine.txt"])
    assert "seqlm.networks.transformer" not in modules(found["train.txt"])
    # A new kind is a new entry, and reruns nothing.
    assert "seqlm.networks.architectures" not in modules(found["train.txt"])
    assert "seqlm.networks.framework" in modules(found["gradients.txt"])
