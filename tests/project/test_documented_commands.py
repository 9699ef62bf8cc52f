"""Every block of commands in README and docs runs, typed into a small copy of the project."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from smoke import ROOT, SMALL
from workspace import Workspace, wait_until

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Beginnings of lines that are not typed here, and why.
SKIPPED = {
    "python3 -m venv .venv": "the copy uses the environment of this suite",
    ". .venv/bin/activate": "the copy uses the environment of this suite",
    "pip ": "needs the network",
    "pytest": "is this suite",
    "export SEQLM_DATA_DIR": "there is no such folder",
    "dvc exp run -S device=cuda": "needs a GPU",
    "dvc exp run -S download.corpus=tiny_shakespeare": "downloads the corpus",
    "SPARK_MASTER": "needs a cluster",
    "dvc exp run -S NAME=VALUE": "stands for others",
}
# The runs that the pages name.
RUNS = {
    "scratch-sequential": {"token": "char"},
    "concise-sequential": {"token": "char"},
    "lstm": {
        "token": "char", "model": "lstm", "num_layers": 2, "embedding": "learned", "embedding_size": 4, "lr": 0.7,
        "checkpoint": "best", "dropout": 0.1, "max_tokens": None,
    },
}  # fmt: skip
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="make works in a virtual environment"),
]


def blocks(page: Path) -> list[list[str]]:
    """Return the lines of each of the page's blocks of shell commands.

    In the README and on pages of howto/, blocks of Python are one command, which runs all up to this one.
    """
    found, python, program = [], page.parent.name == "howto" or page.name == "README.md", ""
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```$", page.read_text(), re.M | re.DOTALL):
        if language == "sh":
            found.append(block.replace("\\\n", " ").splitlines())
        elif python:
            saved = re.findall(r'\.save\("(.+)"\)', program)  # by the blocks before, which run again
            program += block
            found.append([*(f"rm -r {folder}" for folder in saved), "python - <<'END'", *program.splitlines(), "END"])
    return found


def commands_in_text(page: Path) -> list[str]:
    """Return each experiment, and each script of a stage, that the page's text names in backticks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.DOTALL)
    return re.findall(r"`((?:dvc exp run -S|python stages/\w+\.py --) ?[^`]+)`", text)


def prepared(base: Path) -> Workspace:
    """Return the workspace in ``base``, of a user whom Git does not know, unless the page has introduced them."""
    workspace = Workspace(base)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "SEQLM_TRACE"):
        workspace.environment.pop(name)
    workspace.environment |= {"HOME": str(base / "home"), "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "80"}
    return workspace


def introduce(workspace: Workspace) -> None:
    Path(workspace.environment["HOME"], ".gitconfig").write_text("[user]\nname = me\nemail = me@example.org\n")


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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_every_block_of_a_page_runs_in_its_order(page: Path, workspace: Workspace) -> None:
    if "git config user.name" not in page.read_text():
        introduce(workspace)
    for block in blocks(page):
        lines = [line for line in block if not line.startswith(tuple(SKIPPED))]
        workspace.run("sh", "-c", "\n".join(["set -eu", *lines]))
        if any(line.startswith("dvc queue start") for line in lines):
            wait_until(lambda: not re.search("Running|Queued", workspace.run("dvc", "queue", "status").stdout), 300)
            assert "Failed" not in workspace.run("dvc", "queue", "status").stdout


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in_text(page)], ids=lambda page: page.stem)
def test_every_command_in_the_text_of_a_page_runs(page: Path, workspace: Workspace) -> None:
    introduce(workspace)
    for command in commands_in_text(page):
        if not command.startswith(tuple(SKIPPED)):
            workspace.run("sh", "-c", command)
            workspace.run("git", "checkout", "--quiet", "--force", "main")
            workspace.run("dvc", "checkout", "--force", "--quiet")
