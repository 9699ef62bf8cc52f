"""Every block of commands in README and docs works, typed into a small copy of the project."""

import json
import re
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from pages import PAGES, Block, blocks, commands
from smoke import ROOT, SMALL
from workspace import Finished, Repository, Workspace, stages_run

# Lines that are not typed here, and why.
SKIPPED = {
    "python3 -m venv .venv": "the copy uses the environment of this suite",
    ". .venv/bin/activate": "the copy uses the environment of this suite",
    "pip install --require-hashes --requirement requirements-hashed.txt": "installs packages from the network",
    "pip install --no-deps --editable .": "belongs to the line before",
    "pip wheel --no-deps --wheel-dir dist .": "needs the network; test_exporting.py does it",
    "pytest": "is this suite",
    "dvc exp run -S device=cuda": "needs a GPU",
    "make preset NAME=tiny_shakespeare": "downloads the corpus, and the sample is too short for its splits",
    "dask scheduler --port 8786 &": "would outlive the test; tests/ngrams/test_counting.py starts a cluster",
    "dask worker tcp://127.0.0.1:8786 --nworkers 2 --nthreads 1 &": "belongs to the scheduler",
    "DASK_SCHEDULER_ADDRESS=tcp://127.0.0.1:8786 dvc repro": "belongs to the scheduler",
}
WITH_OWN_TESTS = ("docs/howto/experiments.md", "docs/howto/sharing.md")
needs_environment = pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="make works in a virtual environment")
# The runs that the pages name.
RUNS = {
    "scratch-sequential": {"token": "char"},
    "concise-sequential": {"token": "char"},
    "lstm": {"token": "char", "model": "lstm", "lr": 0.7, "checkpoint": "best", "dropout": 0.1, "max_tokens": None},
}
BLOCKS = [block for page in PAGES for block in blocks(page)]


def bare(line: str) -> str:
    return re.sub(r"\s+#.*", "", line).strip()


def typed(repository: Repository, block: Block) -> Finished:
    """Type a block into a shell that stops at the first failure."""
    lines = [line for line in block.lines if bare(line) not in SKIPPED]
    return repository.run("sh", "-c", "\n".join(["set -eu", *lines]))


def restore(workspace: Workspace) -> None:
    workspace.run("git", "checkout", "--quiet", "--force", "main")
    workspace.run("git", "reset", "--hard", "--quiet")
    workspace.run("dvc", "checkout", "--force", "--quiet")


def prepared(base: Path) -> Workspace:
    """Return the workspace in ``base`` of a user whom Git does not know."""
    workspace = Workspace(base)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "SEQLM_TRACE"):
        workspace.environment.pop(name)
    workspace.environment |= {"HOME": str(base / "home"), "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "200"}
    return workspace


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed small workspace with an installed environment and a text of the user's own."""
    base = tmp_path_factory.mktemp("finished")
    workspace = prepared(base)
    (base / "home").mkdir()
    # The orders of params.yaml: the pages name the models of its highest orders.
    workspace.begin(SMALL | {"runs": RUNS, "ngrams.max_order": {"char": 6, "word": 3, "subword": 3}})
    workspace.install()
    workspace.run("dvc", "repro")
    workspace.commit("A run with small settings")
    (workspace.folder / "my.txt").write_text("the sea, the sea and the tide that comes and goes\n" * 400)
    return base


@pytest.fixture
def workspace(finished: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(finished, tmp_path, symlinks=True, dirs_exist_ok=True)
    return prepared(tmp_path)


def introduce(workspace: Workspace) -> None:
    Path(workspace.environment["HOME"], ".gitconfig").write_text("[user]\nname = me\nemail = me@example.org\n")


def test_every_skipped_line_is_in_the_docs() -> None:
    assert len(BLOCKS) >= 10
    lines = {bare(line) for block in BLOCKS for line in block.lines}
    assert set(SKIPPED) <= lines | set(commands())


@pytest.mark.slow
@needs_environment
@pytest.mark.parametrize("name", sorted({block.page for block in BLOCKS} - set(WITH_OWN_TESTS)))
def test_every_block_of_a_page_runs(name: str, workspace: Workspace) -> None:
    heading = ""
    if "git config user.name" not in (ROOT / name).read_text():
        introduce(workspace)
    for block in (block for block in BLOCKS if block.page == name):
        if block.heading != heading:
            restore(workspace)
        heading = block.heading
        typed(workspace, block)


# Experiments and stages by hand that only the text between the blocks names.
IN_TEXT = [
    command
    for command in commands()
    if command.startswith(("dvc exp run -S ", "python stages/"))
    and "--help" not in command
    and command not in SKIPPED
    and not any(command == shlex.join(shlex.split(bare(line))) for block in BLOCKS for line in block.lines)
]


@pytest.mark.slow
def test_every_experiment_and_stage_in_the_text_runs(workspace: Workspace) -> None:
    failed = []
    for command in IN_TEXT:
        restore(workspace)
        result = workspace.run("sh", "-c", command, check=False)
        # The gate ends with 1 if it finds that models became worse.
        if result.returncode not in ((0, 1) if "tools/compare.py" in command else (0,)):
            failed.append((command, result.stderr[-1000:]))
    assert not failed


@pytest.mark.slow
@needs_environment
@pytest.mark.parametrize("identity", [False, True])
def test_the_page_of_experiments_does_what_it_says(identity: bool, workspace: Workspace) -> None:
    if identity:
        introduce(workspace)
    by_heading: dict[str, list[Block]] = {}
    for block in blocks(ROOT / "docs" / "howto" / "experiments.md"):
        by_heading.setdefault(block.heading, []).append(block)

    def section(heading: str) -> list[str]:
        return [typed(workspace, block).stdout for block in by_heading.pop(heading)]

    section("Before the first one")
    name = workspace.run("git", "config", "user.name").stdout.strip()
    assert not identity or name == "me"

    (output,) = section("One change")
    ran = stages_run(output)
    assert "train@scratch-sequential" in ran
    assert "train@lstm" not in ran
    changed = [line.split()[:2] for line in output.splitlines()]
    assert ["reports/evaluate/best.json", "scratch-sequential.val"] in changed
    assert ["params.yaml", "train.lr"] in changed
    assert max(map(len, output[output.index("Path ") :].splitlines())) <= 80, output

    (output,) = section("Add a run")
    assert "train@gru" in stages_run(output)

    (output,) = section("Remove a run")
    assert "removed checkpoints/gru: no such run is left" in output
    for folder in ("data/models/runs", "data/scores/runs", "reports/train", "reports/score", "checkpoints"):
        assert not (workspace.folder / folder / "gru").exists(), folder
    assert "gru" not in (workspace.folder / "dvc.lock").read_text()

    section("Without touching the workspace")
    assert workspace.run("git", "status", "--porcelain", "--untracked-files=no").stdout == ""

    section("A sweep")
    deadline = time.monotonic() + 300
    while (status := workspace.run("dvc", "queue", "status").stdout).count("Success") < 2:
        assert time.monotonic() < deadline, status
        assert "Failed" not in status, status
        time.sleep(2)

    (shown,) = section("Compare")
    assert {"train.lr", "scratch-sequential.val", "└──"} < set(shown.split())
    assert "reports/" not in shown.partition("Experiment ")[2].partition("file:")[0]
    assert (workspace.folder / "dvc_plots" / "index.html").is_file()

    _, names = section("Keep one")
    assert "half-lr" in names
    assert "gru" not in workspace.run("dvc", "exp", "list").stdout
    workspace.run("git", "checkout", "--quiet", "try-gru")
    workspace.run("dvc", "checkout")
    assert (workspace.folder / "reports/train/gru/summary.json").exists()
    assert stages_run(workspace.run("dvc", "repro").stdout) == ["download"]
    assert not by_heading, "sections without a check"


@pytest.mark.slow
def test_the_page_of_sharing_does_what_it_says(workspace: Workspace) -> None:
    introduce(workspace)
    workspace.environment["PYTHONPATH"] = "src"  # project and clones each run their own code
    clone, job = (Repository(workspace.folder.parent / name) for name in ("seqlm-clone", "job"))
    clone.environment = job.environment = workspace.environment
    left = blocks(ROOT / "docs" / "howto" / "sharing.md")

    def type_next(heading: str, repository: Repository = workspace) -> str:
        block = left.pop(0)
        assert block.heading == heading
        return typed(repository, block).stdout

    def num_stored() -> int:
        return sum(path.is_file() for path in (workspace.folder.parent / "seqlm-storage").rglob("*"))

    type_next("A remote")
    pushed = num_stored()
    assert pushed > 30
    workspace.run("dvc", "push")
    assert num_stored() == pushed

    type_next("A clone that retrains nothing")
    assert stages_run(type_next("A clone that retrains nothing")) == ["download"]
    assert clone.run("git", "status", "--porcelain").stdout == ""
    weights, measured = "data/models/runs/scratch-sequential/weights.safetensors", "reports/evaluate/best.json"
    project_weights, clone_weights = workspace.folder / weights, clone.folder / weights
    old = project_weights.read_bytes()
    assert clone_weights.read_bytes() == old

    output = type_next("Experiments between two clones")
    assert "train@scratch-sequential" in stages_run(output)
    assert "half-lr" in output.splitlines()[-1]
    assert measured in type_next("Experiments between two clones")
    assert clone_weights.read_bytes() == project_weights.read_bytes() != old
    assert json.loads((clone.folder / measured).read_text()) == json.loads((workspace.folder / measured).read_text())
    assert stages_run(clone.run("dvc", "repro").stdout) == ["download"]

    # CI has a fresh clone of a commit whose results were pushed with the experiment.
    workspace.run("git", "commit", "--quiet", "--all", "--message", "Half the learning rate")
    workspace.run("git", "push", "--quiet", "origin", "main")
    workspace.run("git", "clone", "--quiet", "../seqlm.git", "../job")
    assert stages_run(type_next("CI with a remote in place of a cache", job)) == ["download"]
    assert not left, "blocks that nothing types"
