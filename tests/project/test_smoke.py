"""``make smoke`` runs the whole pipeline in a copy and leaves the project unchanged."""

import os
import subprocess
import sys

import pytest

from smoke import ROOT


def project_files() -> dict[str, bytes]:
    found = [ROOT / name for name in ("params.yaml", "dvc.lock", "dvc.yaml")]
    found += sorted(path for path in (ROOT / "reports").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in found if path.exists()}


def seconds_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


@pytest.mark.slow
def test_the_whole_pipeline_runs_in_a_copy_within_a_minute() -> None:
    before, begin = project_files(), seconds_of_children()
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "smoke.py"], capture_output=True, text=True, check=True, timeout=300
    )
    # Processor time, which does not depend on other work: the stages run one after another, so on an idle machine the
    # pipeline takes no longer (22 s measured on 2 cores).
    assert seconds_of_children() - begin < 60
    assert "plain" in result.stdout
    assert "The whole pipeline ran in" in result.stdout
    assert project_files() == before
