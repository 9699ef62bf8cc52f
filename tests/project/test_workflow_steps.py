"""What the workflow keeps between runs, and what it asks before it compares."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from smoke import ROOT, SMALL
from workspace import Workspace

JOBS: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
STEPS: list[dict[str, Any]] = JOBS["pipeline"]["steps"]


def place(what: str) -> int:
    """Return the place of the first step of the pipeline that says this."""
    return next(place for place, step in enumerate(STEPS) if what in str(step))


def test_what_was_trained_is_kept_whatever_fails_afterwards() -> None:
    restore, run, save, compare = (
        place(what) for what in ("cache/restore@", "make repro", "cache/save@", "stages/compare.py")
    )
    assert restore < run < save < compare
    # actions/cache itself saves where the whole job succeeds, and only there.
    assert not [step for step in STEPS if step.get("uses", "").startswith("actions/cache@")]
    assert STEPS[save]["if"] == "always()"
    assert STEPS[save]["with"]["path"] == STEPS[restore]["with"]["path"] == ".dvc/cache"
    assert STEPS[save]["with"]["key"] == f"${{{{ steps.{STEPS[restore]['id']}.outputs.cache-primary-key }}}}"


def test_the_cache_knows_every_file_that_decides_a_result() -> None:
    step = STEPS[place("cache/restore@")]["with"]
    (files,) = re.findall(r"hashFiles\(([^)]*)\)", step["key"])
    named = set(re.findall(r"'([^']+)'", files))
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    read = {dep for stage in stages.values() for dep in stage.get("do", stage)["deps"]}
    made = ("data/", "reports/")
    own = {dep for dep in read if not dep.startswith(made)} | {"data/corpora.yaml", "data/sample.txt"}
    own |= {"dvc.yaml", "dvc.lock", "params.yaml"}
    assert {dep for dep in own if dep not in named and f"{dep.partition('/')[0]}/**" not in named} == set()
    # A saved cache is never written again: only a key of its own lets every run save what it has.
    assert step["key"].endswith("-${{ github.run_id }}-${{ github.run_attempt }}")
    assert step["restore-keys"].splitlines() == [f"dvc-${{{{ hashFiles({files}) }}}}-", "dvc-"]


def test_results_that_are_not_of_the_committed_code_are_seen() -> None:
    assert JOBS["lock"]["steps"][-1]["run"] == ".venv/bin/python tools/check_lock.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="make works in a virtual environment")
def test_a_corpus_that_cannot_be_reached_ends_the_pipeline(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    registry = workspace.folder / "data" / "corpora.yaml"
    registry.write_text(re.sub(r"https://\S+", "http://127.0.0.1:1/none", registry.read_text()))
    workspace.begin(SMALL | {"download.corpus": "time_machine"})
    workspace.install()
    result = workspace.run("bash", "-e", "-c", STEPS[place("make repro")]["run"], check=False)
    assert result.returncode != 0
    assert "error: time_machine: no source can be reached" in result.stderr
    assert not (workspace.folder / "data/raw/corpus.txt").exists()
