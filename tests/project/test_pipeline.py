"""The real pipeline, by the real DVC, on the sample corpus with small settings."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from seqlm.core.files import sha256_of_file
from smoke import SMALL
from workspace import Workspace, finished


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A committed workspace in which the pipeline ran once."""
    workspace = finished(tmp_path_factory.mktemp("pipeline"), SMALL)
    workspace.keep_traces()
    workspace.commit("A run with small settings")
    return workspace


@pytest.fixture
def clean(workspace: Workspace) -> Iterator[Workspace]:
    """The workspace; whatever a test changed is undone."""
    yield workspace
    workspace.run("git", "reset", "--hard", "--quiet")
    workspace.run("git", "clean", "-d", "--force", "--quiet")
    workspace.run("dvc", "checkout", "--force", "--quiet")


def stages_run(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.split("'")[1] for line in result.stdout.splitlines() if line.startswith("Running stage")]


def test_one_command_makes_every_artefact(workspace: Workspace) -> None:
    metrics = workspace.metrics()
    assert {"plain", "small-lstm", "char-uniform", "char-kneser-ney-3", "word-laplace-2"} <= set(metrics)
    # Uniform over V tokens has perplexity V, whatever the text.
    assert metrics["char-uniform"]["test"]["perplexity"] == pytest.approx(27 + 1)
    assert "fitted" in metrics["plain"]
    assert "fitted" not in metrics["char-kneser-ney-3"]
    page = (workspace.folder / "reports/index.html").read_text()
    assert "Parity does not apply" in page
    assert "plain" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert (workspace.folder / "reports/generate/samples.md").read_text().count("## ") == 2 + 4


def test_a_second_run_looks_for_the_corpus_and_changes_nothing(clean: Workspace) -> None:
    assert stages_run(clean.run("dvc", "repro")) == ["download"]
    assert clean.run("git", "status", "--porcelain").stdout == ""


def test_everything_again_gives_the_same_bytes(clean: Workspace) -> None:
    clean.run("dvc", "repro", "--force")
    assert clean.run("git", "status", "--porcelain").stdout == ""


def test_a_changed_setting_retrains_the_runs_that_it_concerns(clean: Workspace) -> None:
    result = clean.run("dvc", "exp", "run", "--set-param", "train.lr=0.5")
    ran = stages_run(result)
    assert "train@plain" in ran
    assert "train@small-lstm" not in ran
    diff = clean.run("dvc", "metrics", "diff").stdout
    assert "plain.test.perplexity" in diff
    assert "small-lstm.test.perplexity" not in diff


def test_an_added_run_is_a_row_and_leaves_no_ghost(clean: Workspace) -> None:
    clean.run("dvc", "exp", "run", "--set-param", "+runs.mine={model: gru, sampling: sequential}")
    assert "mine" in clean.metrics()
    assert "mine.test.perplexity" in clean.run("dvc", "metrics", "diff").stdout
    assert "mine" in (clean.folder / "reports/index.html").read_text()
    clean.run("git", "checkout", "--quiet", ".")
    clean.run("dvc", "repro")
    assert "mine" not in clean.metrics()
    assert "mine" not in (clean.folder / "dvc.lock").read_text()
    assert clean.run("git", "status", "--porcelain", "--untracked-files=no").stdout == ""


def test_own_text_needs_one_setting(clean: Workspace) -> None:
    (clean.folder / "my.txt").write_text("<b>bold</b> & the sea, the sea\n" * 400)
    clean.run("dvc", "exp", "run", "--set-param", "download.corpus=my.txt", "--set-param", "preprocess.normalise=none")
    page = (clean.folder / "reports/index.html").read_text()
    assert "my.txt" in page
    # The corpus is shown as text: its markup never becomes the page's.
    assert "<b>bold" not in page


@pytest.mark.parametrize("change", ["seed=-1", "train.lr=.nan", "train.model=rrn", "+evaluate.mixture=true", "+xyz=1"])
def test_a_bad_setting_stops_before_anything_runs(change: str, clean: Workspace) -> None:
    result = clean.run("dvc", "exp", "run", "--set-param", change, "configure", check=False)
    assert result.returncode != 0
    said = result.stdout + result.stderr
    assert f"params.yaml: {change.lstrip('+').partition('=')[0]}" in said
    assert "git checkout params.yaml dvc.lock reports && dvc checkout" in said


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
        while time.monotonic() < deadline and not list((clean.folder / "checkpoints").glob("plain-*.checkpoint")):
            time.sleep(0.05)
        time.sleep(float(rng.uniform(0, 0.5)))
        assert process.poll() is None, "the training ended before it could be killed"
        process.send_signal(stop)
        process.wait(timeout=60)
    result = clean.run("dvc", "repro", "train@plain")
    assert "going on after epoch" in result.stdout
    assert sha256_of_file(weights) == undisturbed
    assert [path.suffix for path in (clean.folder / "checkpoints").glob("plain*")] == [".lock"]


def inside(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def declared_stages(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Return each stage's command, deps, outs and params as DVC resolves them."""
    return workspace.lock()


def test_stages_open_what_they_declare_and_nothing_else(workspace: Workspace) -> None:
    for name, stage in declared_stages(workspace).items():
        opened = workspace.opened[name]
        deps = {dep["path"] for dep in stage.get("deps", [])}
        outs = {out["path"] for out in stage.get("outs", [])}
        # A stage may look at params.yaml, at what it writes itself, its checkpoints and its place of work.
        free = {"params.yaml", "checkpoints", "data/work", ".venv", "tests/tracing/sitecustomize.py"}
        writes = {str(Path(out).parent) for out in outs} | outs
        # Python lists the folders that it imports from; what is only listed needs no declaration.
        read = {path for path in opened if not path.endswith("/")}
        undeclared = {path for path in read if not inside(path, deps | free | writes)}
        assert not undeclared, f"{name} opens {undeclared} without declaring it"
        unopened = {dep for dep in deps if not any(inside(path.rstrip("/"), {dep}) for path in opened)}
        assert not unopened, f"{name} declares {unopened} and never opens it"


def test_stages_read_the_settings_that_they_declare_and_no_others(clean: Workspace) -> None:
    whole = YAML(typ="safe").load(clean.folder / "params.yaml")
    for name, stage in declared_stages(clean).items():
        declared = {key.partition(".")[0] for key in stage.get("params", {}).get("params.yaml", {})}
        if name == "configure":
            assert declared == set(whole)
            continue
        needed = clean.folder / "needed.yaml"
        command = stage["cmd"].replace("--params params.yaml", "--params needed.yaml").split()
        write_yaml(needed, {key: whole[key] for key in declared})
        result = clean.run(*command, check=False)
        assert result.returncode == 0, f"{name} needs more than {declared}: {result.stderr}"
        for key in declared:
            write_yaml(needed, {other: whole[other] for other in declared - {key}})
            result = clean.run(*command, check=False)
            assert (result.returncode, f"{key}: missing" in result.stderr) == (2, True), f"{name} never reads {key}"


def write_yaml(path: Path, value: dict[str, Any]) -> None:
    with path.open("w") as file:
        YAML().dump(value, file)
