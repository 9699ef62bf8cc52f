"""The files for GitHub, editors and pip are valid and agree with the project; the workflow's steps run here."""

import itertools
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from smoke import ROOT, SMALL
from workspace import Workspace

PATH = ROOT / ".github" / "workflows" / "ci.yml"
FORM = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"
PINS = (ROOT / "requirements-hashed.txt").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW: dict[str, Any] = YAML(typ="safe", pure=True).load(PATH)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
PIPELINE: list[dict[str, Any]] = JOBS["pipeline"]["steps"]
CHECKER = shutil.which("check-jsonschema", path=Path(sys.executable).parent)
needs_environment = pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="make works in a virtual environment")
# Steps that are not run here, and why.
SKIPPED = {"make test": "is this suite", "make install-hashed": "installs packages from the network"}
# Values of GitHub's expressions.
EXPRESSIONS = {
    "github.base_ref": "main",
    "github.token": "no-token",
    "github.repository": "someone/seqlm",
    "github.event.pull_request.number": "7",
    "github.event.pull_request.head.sha": "0123abc",
    "github.server_url": "https://github.com",
    "github.run_id": "42",
}
# A stand-in for GitHub's client: it keeps one comment, and logs what it is asked.
GH = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
*--paginate*) test ! -e "$0.comment" || echo 1 ;;
*) for word; do case $word in body=@*) cp "${word#body=@}" "$0.comment" ;; esac; done ;;
esac
"""


def place(words: str) -> int:
    """Return the place of the first step of the job ``pipeline`` that has these words."""
    return next(place for place, step in enumerate(PIPELINE) if words in str(step))


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed: it comes with the extra `test`")
@pytest.mark.parametrize(("schema", "path"), [("workflows", PATH), ("issue-forms", FORM)], ids=["workflow", "form"])
def test_github_accepts_the_file(schema: str, path: Path) -> None:
    subprocess.run([str(CHECKER), "--builtin-schema", f"vendor.github-{schema}", str(path)], check=True)


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="no actionlint on this machine")
def test_actionlint_accepts_the_workflow() -> None:
    subprocess.run(["actionlint", str(PATH)], check=True)


def test_only_two_jobs_may_write_and_they_run_no_code_of_the_project() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    permissions = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    pages = {"contents": "read", "pages": "write", "id-token": "write"}
    assert permissions == {"comment": {"pull-requests": "write"}, "page": pages}
    steps = str(JOBS["comment"]["steps"])
    assert [words for words in ("checkout", "stages/", "make") if words in steps] == []
    assert [step for step in JOBS["page"]["steps"] if "run" in step] == []
    assert "github.event_name == 'push' && needs.lock.result == 'success'" in JOBS["page"]["if"]
    # The event that gives a fork's code the rights of the repository.
    assert "pull_request_target" not in PATH.read_text()


def test_no_shell_script_has_an_expression() -> None:
    # GitHub pastes an expression's value into the script: a branch named `$(...)` would run.
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert step.get("uses", "actions/").startswith("actions/")


def test_actions_are_pinned_by_commits_and_name_their_version() -> None:
    lines = [line.strip() for line in PATH.read_text().splitlines() if "uses: " in line]
    assert len(lines) > 10
    pattern = r"(- )?uses: (actions/[a-z-]+(?:/[a-z]+)?)@([0-9a-f]{40}) # v\d+\.\d+\.\d+"
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    # One version of each action.
    assert len({match[2] for match in found if match}) == len({match[0].removeprefix("- ") for match in found if match})


@pytest.mark.skipif(shutil.which("zizmor") is None, reason="no zizmor on this machine")
def test_zizmor_accepts_the_files_for_github() -> None:
    subprocess.run(["zizmor", "--offline", str(ROOT / ".github")], check=True)


def test_the_key_of_the_cache_depends_on_every_file_that_decides_a_result() -> None:
    step = PIPELINE[place("cache/restore@")]["with"]
    (files,) = re.findall(r"hashFiles\(([^)]*)\)", step["key"])
    named = set(re.findall(r"'([^']+)'", files))
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    deps = {dep for stage in stages.values() for dep in stage.get("do", stage)["deps"]}
    own = {dep for dep in deps if not dep.startswith(("data/", "reports/"))}
    own |= {"data/corpora.yaml", "data/sample.txt", "dvc.yaml", "dvc.lock", "params.yaml"}
    assert {dep for dep in own if dep not in named and f"{dep.partition('/')[0]}/**" not in named} == set()
    # A saved cache is never overwritten, so each run needs a key of its own to save what it has.
    assert step["key"].endswith("-${{ github.run_id }}-${{ github.run_attempt }}")
    assert step["restore-keys"].splitlines() == [f"dvc-${{{{ hashFiles({files}) }}}}-", "dvc-"]


def test_every_dependency_is_pinned_once_with_hashes() -> None:
    lines = [line for line in PINS.splitlines() if not line.startswith("#")]
    pins = [line for line in lines if not line.startswith("    --hash=sha256:")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+( ; .*)? \\", line) for line in pins)
    names = {line.split("==")[0] for line in pins}
    assert len(names) == len(pins) > 100
    assert all(lines[place + 1].startswith("    --hash") for place, line in enumerate(lines) if line in pins)
    extras = (PROJECT["optional-dependencies"][name] for name in ("pipeline", "subwords", "test", "torch"))
    wanted = [*PROJECT["dependencies"], *itertools.chain(*extras)]
    assert {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in wanted} - {"seqlm"} <= names


def commands_of_make(start: str, *arguments: str, target: str = "install") -> list[str]:
    """Return the commands with this start that ``make install``, or another target, would run."""
    command = ["make", "--dry-run", "--always-make", target, *arguments]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in said.replace("\\\n", "").splitlines() if start in line]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_make_reads_the_pins_and_can_install_another_build_of_pytorch() -> None:
    (command,) = commands_of_make("sed ")
    filtered = subprocess.run(["sh", "-c", command.partition(" > ")[0]], cwd=ROOT, capture_output=True, text=True)
    pins = filtered.stdout.splitlines()
    assert len(pins) == len(re.findall(r"^[a-z0-9-]+==", PINS, flags=re.MULTILINE))
    assert not [line for line in pins if "hash" in line or line.endswith("\\")]
    assert "torch==2.13.0" in pins
    assert commands_of_make("--index-url") == []
    # First only PyTorch from there, then everything else from pip's default index.
    pip = commands_of_make("pip install", "TORCH_INDEX=https://x.org/cpu")
    assert re.search(r"--no-deps --index-url 'https://x.org/cpu' .* torch$", pip[0])
    assert "--index-url" not in pip[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_another_build_of_pytorch_leaves_out_its_hashes_and_the_packages_of_cuda() -> None:
    (command,) = commands_of_make("awk ", "TORCH_INDEX=https://x.org/cpu", target="install-hashed")
    kept = subprocess.run(["sh", "-c", command.partition(" > ")[0]], cwd=ROOT, capture_output=True, text=True).stdout
    names, all_names = (set(re.findall(r"^([a-z0-9-]+)==", pins, flags=re.MULTILINE)) for pins in (kept, PINS))
    left_out = all_names - names
    assert {"torch", "triton", "nvidia-nccl-cu13", "cuda-toolkit"} < left_out
    assert {name.partition("-")[0] for name in left_out} == {"torch", "triton", "nvidia", "cuda"}
    assert kept.count("--hash") > 1000
    pip = commands_of_make("pip install", "TORCH_INDEX=https://x.org/cpu", target="install-hashed")
    assert "--require-hashes --requirement .venv/hashed.txt" in pip[0]
    assert "--no-deps --index-url 'https://x.org/cpu' \"$(sed" in pip[1]
    pip = commands_of_make("pip install", target="install-hashed")
    assert "--require-hashes --requirement requirements-hashed.txt" in pip[0]
    assert len(pip) == 2


def test_the_version_is_the_newest_in_the_changelog() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert PROJECT["version"] == versions[0]
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def run_steps(workspace: Workspace, job: str) -> str:
    """Run the shell steps of a job in order, as GitHub does; return the job's summary."""

    def expanded(text: str) -> str:
        return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: EXPRESSIONS[found[1]], text)

    summary, output = (workspace.folder.parent / name for name in ("summary.md", "output"))
    summary.write_text("")
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


@pytest.mark.slow
@needs_environment
def test_the_steps_run_in_order_and_one_comment_has_the_newest_state(workspace: Workspace) -> None:
    client = workspace.folder.parent / "gh"
    client.write_text(GH)
    client.chmod(0o755)
    workspace.environment["PATH"] = f"{client.parent}:{workspace.environment['PATH']}"
    workspace.install()
    workspace.git("update-ref", "refs/remotes/origin/main", "main")

    run_steps(workspace, "test")
    summary = run_steps(workspace, "pipeline")
    assert "values are the same" in summary
    assert "compared=true" in (workspace.folder.parent / "output").read_text()
    run_steps(workspace, "comment")
    first = client.with_suffix(".comment").read_text()
    assert summary in first
    assert "someone/seqlm/blob/0123abc/reports/figures/evaluate-highlights.svg?raw=true" in first

    # With a learning rate so low that nothing is learned, the gate fails, and the same comment says so.
    workspace.update_params({"train.lr": 1e-6})
    workspace.commit("Learn more slowly")
    with pytest.raises(AssertionError, match=r"tools/compare\.py"):
        run_steps(workspace, "pipeline")
    run_steps(workspace, "comment")
    second = client.with_suffix(".comment").read_text()
    log = client.with_suffix(".log").read_text()
    asked = re.findall(r"--method (\S+) (\S+)", log)
    assert asked == [
        ("POST", "repos/someone/seqlm/issues/7/comments"), ("PATCH", "repos/someone/seqlm/issues/comments/1"),
    ]  # fmt: skip
    assert ", worse |" in second
    assert "train.lr" in second
    assert "| reports/score/plain.json | test_bits " in " ".join(second.split())


@pytest.mark.slow
@needs_environment
def test_the_pipeline_fails_if_the_corpus_cannot_be_downloaded(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    registry = workspace.folder / "data" / "corpora.yaml"
    registry.write_text(re.sub(r"https://\S+", "http://127.0.0.1:1/none", registry.read_text()))
    workspace.begin(SMALL | {"download.corpus": "time_machine"})
    workspace.install()
    result = workspace.run("bash", "-e", "-c", PIPELINE[place("make repro")]["run"], check=False)
    assert result.returncode != 0
    assert "error: time_machine: no source can be reached" in result.stderr
    assert not (workspace.folder / "data/raw/corpus.txt").exists()
