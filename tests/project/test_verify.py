"""``make verify`` and ``make smoke`` run the whole pipeline in copies of the project."""

import os
import subprocess
import sys

import pytest

from smoke import ROOT
from verify import Stages, differences


def tool(name: str, *options: str) -> str:
    command = [sys.executable, ROOT / "tools" / name, *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def lock(**stages: dict[str, str]) -> Stages:
    """Return the entries of a dvc.lock from the hashes of the outs of each stage."""
    return {name: {"outs": [{"path": p, "md5": h} for p, h in outs.items()]} for name, outs in stages.items()}


def test_differences_are_named_in_the_order_of_the_pipeline() -> None:
    expected = lock(report={"z": "1"}, **{"train@b": {"x": "1", "y": "2"}}, sine={"w": "1"})
    found = lock(report={"z": "2"}, **{"train@b": {"x": "3", "v": "2"}}, sine={"w": "1"})
    assert differences(expected, expected) == {}
    assert list(differences(expected, found).items()) == [("train@b", ["v", "x", "y"]), ("report", ["z"])]


@pytest.mark.slow
def test_two_runs_from_scratch_give_the_same_hashes() -> None:
    # The last line: "second run: 80 of 80 outputs are equal".
    equal, _, total, *_ = tool("verify.py", "--small").splitlines()[-1].removeprefix("second run: ").split()
    assert equal == total
    assert int(total) > 50


def project_files() -> dict[str, bytes]:
    found = [ROOT / name for name in ("params.yaml", "dvc.lock", "dvc.yaml")]
    found += (path for path in (ROOT / "reports").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if path.exists()}


@pytest.mark.slow
def test_the_whole_pipeline_runs_in_a_copy_within_a_minute() -> None:
    before, begin = project_files(), os.times()
    output = tool("smoke.py")
    # Processor time, which does not depend on other work: the stages run one after another, so on an idle machine the
    # pipeline takes no longer (22 s measured on 2 cores).
    end = os.times()
    assert end.children_user + end.children_system - begin.children_user - begin.children_system < 60
    assert "plain" in output
    assert "The whole pipeline ran in" in output
    assert project_files() == before
