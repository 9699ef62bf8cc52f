"""What is installed is pinned, and installed again in a folder that was moved."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from smoke import ROOT

PINS = (ROOT / "requirements-hashed.txt").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_dependency_is_pinned_once_with_hashes() -> None:
    pins = re.findall(r"^([a-z0-9-]+)==\S+( ; .*)? \\\n    --hash=sha256:", PINS, flags=re.MULTILINE)
    names = {name for name, _ in pins}
    assert len(names) == len(pins) == len(re.findall("^[a-z]", PINS, flags=re.MULTILINE)) > 100
    extras = (PROJECT["optional-dependencies"][name] for name in ("pipeline", "subwords", "test", "torch"))
    wanted = [line for lines in (PROJECT["dependencies"], *extras) for line in lines]
    assert {re.split(r"[^\w.-]", line)[0].lower().replace(".", "-") for line in wanted} - {"seqlm"} <= names


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_moved_environment_is_made_again(tmp_path: Path) -> None:
    def needed(folder: Path) -> str:
        return subprocess.run(["make", "-n", "install"], cwd=folder, check=True, capture_output=True, text=True).stdout

    here, there = tmp_path / "here", tmp_path / "a folder, moved"
    (here / ".venv").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements-hashed.txt"):
        shutil.copy(ROOT / name, here)
    assert "-m venv  .venv" in needed(here)
    (here / ".venv" / "installed").write_text(f"{(here / '.venv').resolve()}\n")
    assert "venv" not in needed(here)
    here.rename(there)
    assert "-m venv --clear .venv" in needed(there)
    (there / ".venv" / "installed").write_text("")  # an older version's, of which nothing is known
    assert "venv" not in needed(there)
