"""The commands of docs/howto/sharing.md do what the page says, with a remote in a folder and a bare Git repository."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from pages import blocks
from smoke import ROOT, SMALL
from workspace import Workspace, stages_run

BLOCKS = blocks(ROOT / "docs" / "howto" / "sharing.md")
RUNS = {"plain": {"token": "char"}}


class Typist:
    """Types the blocks of the page in order."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.left = list(BLOCKS)

    def type_next(self, heading: str, folder: Path) -> str:
        """Type the next block, which is under this heading, in a project's folder; return its output."""
        block = self.left.pop(0)
        assert block.heading == heading
        return self.run(folder, "sh", "-c", "\n".join(["set -eu", *block.lines]))

    def run(self, folder: Path, *command: str) -> str:
        """Run a command in a folder; return its output."""
        result = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True, text=True, timeout=1800)
        assert result.returncode == 0, f"{command}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        return result.stdout


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A committed small workspace of a user with a Git identity."""
    workspace = Workspace(tmp_path)
    workspace.environment.pop("SEQLM_TRACE")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = me\nemail = me@example.org\n")
    # Project and clone each run their own code.
    workspace.environment |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": "src"}
    workspace.begin(SMALL | {"runs": RUNS})
    workspace.run("dvc", "repro", timeout=1800)
    workspace.commit("A run with small settings")
    return workspace


def files(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))


@pytest.mark.slow
def test_results_reach_a_clone_without_training_again(workspace: Workspace) -> None:
    project, page = workspace.folder, Typist(workspace.environment)
    storage, clone = (project.parent / name for name in ("seqlm-storage", "seqlm-clone"))

    page.type_next("A remote", project)
    pushed = files(storage)
    assert pushed > 30
    page.run(project, "dvc", "push")
    assert files(storage) == pushed

    heading = "A clone that retrains nothing"
    page.type_next(heading, project)
    assert stages_run(page.type_next(heading, project)) == ["download"]
    assert page.run(clone, "git", "status", "--porcelain") == ""
    weights = "data/models/runs/plain/weights.safetensors"
    old = (project / weights).read_bytes()
    assert (clone / weights).read_bytes() == old

    heading = "Experiments between two clones"
    output = page.type_next(heading, project)
    assert "train@plain" in stages_run(output)
    assert "half-lr" in output.splitlines()[-1]
    assert "reports/score/plain/metrics.json" in page.type_next(heading, project)
    assert (clone / weights).read_bytes() == (project / weights).read_bytes() != old
    measured = "reports/score/plain/metrics.json"
    assert json.loads((clone / measured).read_text()) == json.loads((project / measured).read_text())
    assert stages_run(page.run(clone, "dvc", "repro")) == ["download"]

    # CI has a fresh clone of a commit whose results were pushed with the experiment.
    workspace.commit("Half the learning rate")
    page.run(project, "git", "push", "--quiet", "origin", "main")
    page.run(project, "git", "clone", "--quiet", "../seqlm.git", "../job")
    assert stages_run(page.type_next("CI with a remote in place of a cache", project.parent / "job")) == ["download"]
    assert not page.left, "blocks that nothing types"
