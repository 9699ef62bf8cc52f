"""``make verify`` compares a run from scratch with dvc.lock and names the first stage that differs."""

import subprocess
import sys

import pytest

from smoke import ROOT
from verify import Stages, differences, pipeline_order


def lock(**stages: tuple[list[str], dict[str, str]]) -> Stages:
    """Return the entries of a dvc.lock from the deps of each stage and the hashes of its outs."""
    return {
        name: {"deps": [{"path": dep} for dep in deps], "outs": [{"path": p, "md5": h} for p, h in outs.items()]}
        for name, (deps, outs) in stages.items()
    }


def test_stages_come_after_those_they_depend_on() -> None:
    stages = lock(
        report=(["reports/evaluate"], {"page": "1"}),  # the folder of another stage's outs
        evaluate=(["data/scores/x/nats", "src"], {"reports/evaluate/table.csv": "1"}),  # a file of another stage's out
        score=(["data/models"], {"data/scores/x": "1"}),
        train=([], {"data/models": "1"}),
    )
    assert pipeline_order(stages) == ["train", "score", "evaluate", "report"]


def test_differences_are_named_in_the_order_of_the_pipeline() -> None:
    expected = lock(b=(["x"], {"z": "1"}), a=([], {"x": "1", "y": "2"}), same=([], {"w": "1"}))
    found = lock(b=(["x"], {"z": "2"}), a=([], {"x": "3", "v": "2"}), same=([], {"w": "1"}))
    assert differences(expected, expected) == {}
    assert list(differences(expected, found).items()) == [("a", ["v", "x", "y"]), ("b", ["z"])]


@pytest.mark.slow
def test_two_runs_from_scratch_give_the_same_hashes() -> None:
    command = [sys.executable, str(ROOT / "tools/verify.py"), "--small"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    *_, last = result.stdout.splitlines()
    equal, _, total, *_ = last.removeprefix("second run: ").split()  # "80 of 80 outputs are equal"
    assert equal == total
    assert int(total) > 50
