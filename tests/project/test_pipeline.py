"""The real pipeline, run by the real DVC on the sample corpus with small settings."""

import json

import pytest

from declared_deps import inside, require_declared_files, require_declared_settings
from workspace import Workspace, stages_run


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


def downstream(workspace: Workspace, stages: set[str]) -> set[str]:
    """Return these stages, and those that read their outputs, directly or not."""
    lock = workspace.lock()
    found: set[str] = set()
    while more := stages - found:
        found |= more
        outs = {out["path"] for name in more for out in lock[name].get("outs", [])}
        # A stage may depend on an output, on a folder around it, or on a file in it.
        stages = {
            name
            for name, stage in lock.items()
            for dep in stage.get("deps", [])
            if inside(dep["path"], outs) or any(inside(out, {dep["path"]}) for out in outs)
        }
    return found


@pytest.mark.slow
def test_only_an_edit_that_can_change_a_number_reruns_more_than_configure(clean: Workspace) -> None:
    # tests/configure has more of what cannot change a number.
    edit(clean, "src/seqlm/core/layout.py", "\n    def split(", "\n    def split_again(")  # a helper for paths
    edit(clean, "stages/train.py", "resuming after", "continuing after")  # what a stage prints
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
    assert not found & {"configure", "preprocess", "vocab@char", "train@plain", "score@plain", "gradients"}
    assert downstream(clean, {"evaluate"}) == {"evaluate", "generate", "report"}
    subwords = downstream(clean, {"vocab@subword"})
    assert {"ngrams@subword", "score-ngrams@subword", "evaluate"} <= subwords
    assert [name for name in subwords if name.startswith(("train@", "score@")) or name.endswith("@char")] == []


def test_stages_open_the_files_and_read_the_settings_they_declare_and_no_others(workspace: Workspace) -> None:
    require_declared_files(workspace)
    require_declared_settings(workspace)
