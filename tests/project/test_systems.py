"""Differences between systems: line ends, names of folders, and letters that a terminal lacks."""

from pathlib import Path

import pytest

from smoke import ROOT, SMALL, change_params
from stages_by_hand import RunStage, succeeded
from workspace import Repository, Workspace, finished


@pytest.mark.slow
def test_a_folder_may_have_spaces_and_any_letters(workspace: Workspace, tmp_path: Path) -> None:
    assert finished(tmp_path / "Zeit und Räume – время 時間", SMALL).hashes() == workspace.hashes()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_letters_that_the_terminal_lacks_become_escapes(encoding: str, run_script: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {"download.corpus": "время.txt"})
    (tmp_path / "время.txt").write_text("время идёт\n" * 20, encoding="utf-8")
    printed = succeeded(run_script("download", PYTHONIOENCODING=f"{encoding}:strict", PYTHONUTF8="0"))
    # The second letter is U+0440.
    assert ("время" if encoding == "utf-8" else "\\u0440") in printed


def test_a_clone_keeps_line_ends_whatever_git_is_set_to() -> None:
    # data/corpora.yaml and dvc.lock hold hashes of the bytes, and Git for Windows would change them by default.
    said = Repository(ROOT).run("git", "check-attr", "eol", "--", "data/sample.txt", "data/corpora.yaml").stdout
    assert said.splitlines() == ["data/sample.txt: eol: lf", "data/corpora.yaml: eol: lf"]
