"""The workflow is valid, and its steps do on this machine what they do on GitHub's."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from smoke import ROOT, SMALL
from workspace import Workspace

PATH = ROOT / ".github" / "workflows" / "ci.yml"
WORKFLOW: dict[str, Any] = YAML(typ="safe", pure=True).load(PATH)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
CHECKER = shutil.which("check-jsonschema", path=Path(sys.executable).parent)
# Steps that are not run, and why.
SKIPPED = {"make test": "is this suite", "make install-hashed": "installs packages from the network"}
# What GitHub puts in place of its expressions.
EXPRESSIONS = {
    "github.base_ref": "main",
    "github.token": "no-token",
    "github.repository": "someone/seqlm",
    "github.event.pull_request.number": "7",
    "github.event.pull_request.head.sha": "0123abc",
    "github.server_url": "https://github.com",
    "github.run_id": "42",
}
# GitHub's client cannot be reached from a test. This one keeps comments in a file, and knows no other request.
GH = """
import json, pathlib, sys
store = pathlib.Path(__file__).with_name("comments.json")
comments = json.loads(store.read_text()) if store.exists() else []
words = sys.argv[1:]
assert words.pop(0) == "api"
if "--paginate" in words:
    marker = words[words.index("--jq") + 1].split('"')[3]
    assert words[words.index("--paginate") + 1] == "repos/someone/seqlm/issues/7/comments"
    print(*(id for id, body in enumerate(comments, 1) if body.startswith(marker)), sep="\\n")
else:
    method, url, field = (words[words.index(flag) + place] for flag, place in
                          (("--method", 1), ("--method", 2), ("--field", 1)))
    body = pathlib.Path(field.removeprefix("body=@")).read_text()
    if method == "POST":
        assert url == "repos/someone/seqlm/issues/7/comments"
        comments.append(body)
    else:
        assert (method, url.rpartition("/")[0]) == ("PATCH", "repos/someone/seqlm/issues/comments")
        comments[int(url.rpartition("/")[2]) - 1] = body
    store.write_text(json.dumps(comments))
"""


def expanded(text: str) -> str:
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: EXPRESSIONS[found[1]], text)


def run_steps(workspace: Workspace, job: str) -> str:
    """Run the shell steps of a job in order, as GitHub does; return the job's summary."""
    summary = workspace.folder.parent / "summary.md"
    summary.write_text("")
    output = workspace.folder.parent / "output"
    values = {name: expanded(value) for name, value in JOBS[job].get("env", {}).items()}
    before = dict(workspace.environment)
    workspace.environment |= values | {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
    try:
        for step in JOBS[job]["steps"]:
            if "run" in step and step["run"] not in SKIPPED and step.get("if") != "runner.os == 'Windows'":
                workspace.run("bash", "-e", "-c", step["run"])
    finally:
        workspace.environment = before
    return summary.read_text()


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed: it comes with the extra `test`")
def test_the_workflow_has_the_form_that_github_asks_for() -> None:
    subprocess.run([str(CHECKER), "--builtin-schema", "vendor.github-workflows", str(PATH)], check=True)


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="no actionlint on this machine")
def test_actionlint_has_nothing_to_say() -> None:
    subprocess.run(["actionlint", str(PATH)], check=True)


def test_one_job_may_write_and_it_runs_no_code_of_the_pull_request() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "comment": {"pull-requests": "write"}
    }
    steps = JOBS["comment"]["steps"]
    assert not [step for step in steps if "checkout" in step.get("uses", "")]
    assert "stages/" not in str(steps)
    assert "make" not in str(steps)
    # The event that gives a fork's code the rights of the repository.
    assert "pull_request_target" not in PATH.read_text()


def test_every_report_that_the_workflow_names_is_there() -> None:
    names = re.findall(r"\breports/[\w./-]+\.\w+", PATH.read_text())
    assert "reports/figures/evaluate-comparison.svg" in names
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_no_expression_stands_in_a_shell_script() -> None:
    # GitHub pastes an expression's value into the script: a branch named `$(...)` would run.
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert step.get("uses", "actions/").startswith("actions/")


def test_the_oldest_and_the_newest_python_are_tested() -> None:
    oldest, newest = JOBS["test"]["strategy"]["matrix"]["python"]
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()
    assert tuple(map(int, newest.split("."))) > tuple(map(int, oldest.split(".")))
    assert "make test" in [step.get("run") for step in JOBS["test"]["steps"]]


def test_the_three_systems_are_tested() -> None:
    matrix = JOBS["test"]["strategy"]["matrix"]
    assert {*matrix["os"], *(more["os"] for more in matrix["include"])} == {
        "ubuntu-latest",
        "macos-latest",
        "windows-latest",
    }
    # Each system installs and tests once: with make, or with the README's commands without it.
    steps = [step for step in JOBS["test"]["steps"] if "run" in step]
    (typed,) = [step["run"] for step in steps if step["if"] == "runner.os == 'Windows'"]
    assert [step["run"] for step in steps if step["if"] == "runner.os != 'Windows'"] == [
        "make install-hashed",
        "make test",
    ]
    readme = (ROOT / "README.md").read_text()
    assert all(line in readme for line in typed.splitlines() if line.startswith("pip "))
    assert typed.splitlines()[-1] == "pytest"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A committed small workspace with an installed environment and a GitHub client of its own."""
    workspace = Workspace(tmp_path)
    workspace.environment.pop("SEQLM_TRACE")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "client.py").write_text(GH)
    client = tools / "gh"
    client.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tools / "client.py"}" "$@"\n')
    client.chmod(0o755)
    workspace.environment["PATH"] = f"{tools}:{workspace.environment['PATH']}"
    workspace.run("git", "init", "--quiet", "--initial-branch=main")
    workspace.update_params(SMALL)
    workspace.install()
    workspace.run("dvc", "repro")
    workspace.commit("A run with small settings")
    workspace.run("git", "update-ref", "refs/remotes/origin/main", "main")
    return workspace


@pytest.mark.slow
@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="make works in a virtual environment")
def test_the_steps_run_in_order_and_one_comment_tells_the_newest_state(workspace: Workspace) -> None:
    comments = workspace.folder.parent / "tools" / "comments.json"
    run_steps(workspace, "test")
    summary = run_steps(workspace, "pipeline")
    assert "values are the same" in summary
    assert "compared=true" in (workspace.folder.parent / "output").read_text()
    run_steps(workspace, "comment")
    (first,) = json.loads(comments.read_text())
    assert summary in first
    assert "someone/seqlm/blob/0123abc/reports/figures/evaluate-comparison.svg?raw=true" in first

    # A learning rate so low that nothing is learnt: the gate stops it, and the same comment says so.
    workspace.update_params({"train.lr": 1e-6})
    with pytest.raises(AssertionError, match=r"stages/compare\.py"):
        run_steps(workspace, "pipeline")
    run_steps(workspace, "comment")
    (second,) = json.loads(comments.read_text())
    assert "| worse |" in second
    assert "train.lr" in second
    assert "| reports/score/plain/metrics.json | test_bits " in " ".join(second.split())
