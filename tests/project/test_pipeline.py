"""The real pipeline, by the real DVC, on the sample corpus with small settings."""

import json
import signal
import time

import numpy as np
import pytest

from declarations import require_declared_files, require_declared_settings
from seqlm.core.files import sha256_of_file
from workspace import Workspace, stages_run


def test_one_command_makes_every_artefact(workspace: Workspace) -> None:
    measures = workspace.measures()
    assert {
        "plain",
        "small-lstm",
        "char-uniform",
        "char-kneser-ney-3",
        "word-laplace-2",
        "subword-kneser-ney-2",
    } <= set(measures)
    learning = {"small-lstm+dynamic", "char-kneser-ney-7+dynamic", "char-by-word-kneser-ney-3+dynamic"}
    assert learning <= set(measures)
    assert any(name.startswith("small-lstm+char-") and name.endswith("+dynamic") for name in measures)
    # Uniform over V tokens has perplexity V, whatever the text.
    assert measures["char-uniform"]["test"]["perplexity"] == pytest.approx(27 + 1)
    assert "fitted" in measures["plain"]
    assert "fitted" not in measures["char-kneser-ney-3"]
    page = (workspace.folder / "reports/index.html").read_text()
    assert "Parity does not apply" in page
    assert "plain" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert (workspace.folder / "reports/generate/samples.md").read_text().count("## ") == 2 + 2 * 3


def test_a_second_run_looks_for_the_corpus_and_changes_nothing(clean: Workspace) -> None:
    assert stages_run(clean.run("dvc", "repro").stdout) == ["download"]
    assert clean.run("git", "status", "--porcelain").stdout == ""


@pytest.mark.slow
def test_everything_again_gives_the_same_bytes(clean: Workspace) -> None:
    clean.run("dvc", "repro", "--force")
    assert clean.run("git", "status", "--porcelain").stdout == ""


def would_run(workspace: Workspace) -> set[str]:
    """Return the stages that DVC says are changed, but for the one that looks for the corpus each time."""
    changed = json.loads(workspace.run("dvc", "status", "--json").stdout)
    return set(changed) - {"download"}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("evaluate/mixtures.py", {"evaluate", "report"}),
        ("report/figures/style.py", {"report"}),
        ("report/page.py", {"report"}),
    ],
)
def test_a_changed_module_concerns_its_stage_and_what_follows(module: str, stages: set[str], clean: Workspace) -> None:
    assert would_run(clean) == set()
    path = clean.folder / "src/seqlm" / module
    path.write_text(path.read_text() + "# touched\n")
    changed = would_run(clean)
    assert module.partition("/")[0] in changed
    assert changed <= stages


def test_other_subwords_concern_no_run_over_characters(clean: Workspace) -> None:
    clean.update_params({"vocab.subword.vocab_size": 350})
    clean.run("dvc", "repro", "vocab")
    changed = would_run(clean)
    assert {"ngrams@subword", "score-ngrams@subword", "evaluate"} <= changed
    assert not {stage for stage in changed if stage.startswith(("train@", "score@")) or stage.endswith("@char")}


@pytest.mark.slow
def test_killed_pipelines_go_on_to_the_same_hashes(clean: Workspace) -> None:
    clean.update_params({"train.num_epochs": 3000, "train.checkpoint_s": 0.1, "train.sample_every": 0})
    clean.run("dvc", "repro", "train@plain")
    weights = clean.folder / "data/models/runs/plain/weights.safetensors"
    undisturbed, rng = sha256_of_file(weights), np.random.default_rng(0)
    clean.update_params({"train.eval_every": 3000})  # another run of the same arithmetic
    for stop in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        process = clean.start("dvc", "repro", "train@plain")
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not list((clean.folder / "checkpoints/plain").glob("*.checkpoint")):
            time.sleep(0.05)
        time.sleep(float(rng.uniform(0, 0.5)))
        assert process.poll() is None, "the training ended before it could be killed"
        process.send_signal(stop)
        process.wait(timeout=60)
    result = clean.run("dvc", "repro", "train@plain")
    assert "resuming after epoch" in result.stdout
    assert sha256_of_file(weights) == undisturbed
    assert [path.name for path in (clean.folder / "checkpoints/plain").iterdir()] == ["lock"]


def test_stages_open_what_they_declare_and_nothing_else(workspace: Workspace) -> None:
    require_declared_files(workspace)


def test_stages_read_the_settings_that_they_declare_and_no_others(clean: Workspace) -> None:
    require_declared_settings(clean)
