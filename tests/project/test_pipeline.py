"""The real pipeline, run once by the real DVC on the sample corpus with small settings, and experiments with it."""

import contextlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from declared_deps import require_declared_files, require_declared_settings
from full_disks import as_owner
from smoke import ROOT, SMALL, change_params
from stages_by_hand import refused
from workspace import Finished, Workspace, finished, stages_run


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace in which the pipeline ran once."""
    workspace = finished(tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; the test's changes are undone afterwards."""
    yield workspace
    workspace.restore()


def test_one_command_makes_every_artefact(workspace: Workspace) -> None:
    metrics = workspace.metrics()
    static = {"plain", "small-lstm", "char-uniform", "char-kneser-ney-3", "word-laplace-2", "subword-kneser-ney-2"}
    dynamic = {"small-lstm+dynamic", "char-kneser-ney-7+dynamic", "char-by-word-kneser-ney-3+dynamic"}
    assert static | dynamic <= set(metrics)
    # A uniform model of V tokens has perplexity V on any text.
    assert metrics["char-uniform"]["test"]["perplexity"] == pytest.approx(27 + 1)
    assert "train_subset" in metrics["plain"]
    assert "train_subset" not in metrics["char-kneser-ney-3"]
    page = (workspace.folder / "reports/index.html").read_text()
    assert 'id="book"' not in page  # this is another text
    assert "plain" in page
    assert 'href="playground.html"' in page
    assert "weights-small-lstm" in (workspace.folder / "reports/playground.html").read_text()
    assert json.loads((workspace.folder / "data/models/runs/plain/samples.json").read_text())["samples"]
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    samples = json.loads((workspace.folder / "reports/generate/samples.json").read_text())
    assert {sample["model"] for sample in samples} >= static - {"char-uniform"}


def test_a_second_run_only_verifies_the_corpus_and_changes_nothing(workspace: Workspace) -> None:
    assert stages_run(workspace.run("dvc", "repro").stdout) == ["download"]
    assert workspace.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_forced_runs_write_the_same_bytes(clean: Workspace) -> None:
    clean.run("dvc", "repro", "--force")
    assert clean.git("status", "--porcelain") == ""


def changed_stages(workspace: Workspace) -> set[str]:
    """Return the stages that DVC would run because their own dependencies changed."""
    return set(json.loads(workspace.run("dvc", "status", "--json").stdout)) - {"download"}


def edit(workspace: Workspace, file: str, old: str, new: str) -> None:
    path = workspace.folder / file
    text = path.read_text()
    assert old in text, (file, old)
    path.write_text(text.replace(old, new, 1))


def downstream(workspace: Workspace, stage: str) -> set[str]:
    """Return a stage, and those that read its outputs, directly or not."""
    return set(stages_run(workspace.run("dvc", "repro", "--dry", "--force", "--downstream", stage).stdout))


@pytest.mark.slow
def test_only_an_edit_that_can_change_a_number_reruns_more_than_configure(clean: Workspace) -> None:
    # tests/configure has more of what cannot change a number.
    edit(clean, "src/seqlm/core/layout.py", "\n    def split(", "\n    def split_again(")  # a helper for paths
    edit(clean, "stages/sine.py", "training loss by epoch", "loss by epoch")  # what a stage prints
    edit(clean, "src/seqlm/train/trainer.py", '"""', '"""It is said: ')  # a docstring
    assert changed_stages(clean) == {"configure"}
    assert set(stages_run(clean.run("dvc", "repro", "configure").stdout)) <= {"configure", "download"}
    assert changed_stages(clean) == set()
    for file in ("src/seqlm/pipeline/evaluate/tables.py", "src/seqlm/ngrams/models/laplace.py"):
        with (clean.folder / file).open("a") as module:
            module.write("\n\nPRIOR = 0.5\n")
    clean.run("dvc", "repro", "configure")
    found = changed_stages(clean)
    assert {"evaluate", "ngrams@word", "score-ngrams@char"} <= found
    assert not found & {"configure", "preprocess", "vocab@char", "train@plain", "gradients"}
    assert downstream(clean, "evaluate") == {"evaluate", "generate", "report"}
    subwords = downstream(clean, "vocab@subword")
    assert {"ngrams@subword", "score-ngrams@subword", "evaluate"} <= subwords
    assert [name for name in subwords if name.startswith(("train@", "score@")) or name.endswith("@char")] == []


def test_stages_open_the_files_and_read_the_settings_they_declare_and_no_others(workspace: Workspace) -> None:
    require_declared_files(workspace)
    require_declared_settings(workspace)


@pytest.mark.slow
def test_a_folder_may_have_spaces_and_any_letters(workspace: Workspace, tmp_path: Path) -> None:
    assert finished(tmp_path / "Zeit und Räume – время 時間", SMALL).lock() == workspace.lock()


@pytest.mark.slow
def test_the_code_of_every_cell_of_the_notebook_runs(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    with contextlib.chdir(workspace.folder), mpl.rc_context({"backend": "agg"}):
        for cell in json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    printed, errors = capsys.readouterr()
    assert re.findall(r"^(\S+): time traveller", printed, re.M) == ["0", "0.5", "1"]
    assert errors == ""
    assert plt.get_fignums() != []
    plt.close("all")


@pytest.mark.slow
def test_an_experiment_and_the_way_back(clean: Workspace) -> None:
    options = [word for change in ("train.lr=0.5", "+runs.mine={token: char, model: gru}") for word in ("-S", change)]
    ran = stages_run(clean.run("dvc", "exp", "run", *options, "evaluate").stdout)
    # The run small-lstm has its own learning rate, and a new run costs one training and one scoring.
    assert set(ran) == {
        "download", "configure", "train@plain", "train@mine", "score@plain", "score@mine", "evaluate",
    }  # fmt: skip
    # One setting changes, and a name with two settings is added.
    assert clean.git("diff", "--numstat", "params.yaml").split() == [str(1 + 3), "1", "params.yaml"]
    # What changed, and the bits of what it changed, fit a terminal.
    shown = clean.run("dvc", "exp", "show", "--only-changed", "--drop", "test|params|runs|.*/").stdout
    difference = clean.run("dvc", "metrics", "diff").stdout
    assert {"val.plain", "val.mine", "train.lr"} <= set(shown.split())
    assert {"val.plain", "test.plain", "val.mine", "test.mine"} <= set(difference.split())
    for output in (shown, difference):
        assert "small-lstm" not in output
        assert max(map(len, output.splitlines())) <= 80, output
    assert "mine" in clean.metrics()

    removal = clean.run("dvc", "exp", "run", "--set-param", "~runs.mine", "evaluate").stdout
    assert "removed data/models/runs/mine: no such run is left" in removal
    assert "removed score@mine from dvc.lock" in removal
    assert "mine" not in (clean.folder / "dvc.lock").read_text()

    clean.git("checkout", "--quiet", ".")
    # The stage download removes what the added run left; everything else comes from the cache.
    assert set(stages_run(clean.run("dvc", "repro").stdout)) <= {"download", "evaluate"}
    assert "mine" not in clean.metrics()
    assert "mine" not in (clean.folder / "dvc.lock").read_text()
    assert clean.git("status", "--porcelain", "--untracked-files=no") == ""
    assert clean.git("ls-files", "--others", "--exclude-standard", "reports") == ""


STAGES = [
    "download", "preprocess", "vocab@char", "ngrams@char", "sine", "configure", "train@plain", "score@plain",
    "score-ngrams@char", "evaluate", "generate", "gradients", "report",
]  # fmt: skip
# No file may grow beyond 20 bytes: the first larger write fails halfway.
SMALL_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
os.execv(sys.argv[1], sys.argv[1:])
"""


def copy_inputs(workspace: Workspace, folder: Path) -> None:
    for name in ("data", "reports"):
        shutil.copytree(workspace.folder / name, folder / name)
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(workspace.folder / name, folder)


def run(workspace: Workspace, stage: str, folder: Path, *before: str) -> Finished:
    """Run a stage by its command in ``dvc.lock``, after some words, in another folder."""
    words = [*before, sys.executable, *shlex.split(workspace.lock()[stage]["cmd"])[1:], "--root", str(folder)]
    return workspace.run(*words, check=False, PYTHONDONTWRITEBYTECODE="1")  # which may be cut off, too


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of each file but locks, which may be one that cannot be read."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock")]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_disk_that_fills_up_changes_no_file(stage: str, workspace: Workspace, tmp_path: Path) -> None:
    copy_inputs(workspace, tmp_path)
    before = states(tmp_path)
    refused(run(workspace, stage, tmp_path, sys.executable, "-c", SMALL_FILES), 5, "File too large")
    assert states(tmp_path) == before


@pytest.mark.slow
def test_a_corpus_that_nobody_may_read_is_named(workspace: Workspace, tmp_path: Path) -> None:
    copy_inputs(workspace, tmp_path)
    change_params(tmp_path / "params.yaml", {"download.corpus": str(tmp_path / "mine.txt")})
    (tmp_path / "mine.txt").write_text("the sea\n" * 500)
    (tmp_path / "mine.txt").chmod(0)
    refused(run(workspace, "download", tmp_path, *as_owner()), 5, "mine.txt")
