"""Stages run by hand: options write no tracked file, and only a stage under DVC removes stale runs."""

import re
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from small_runs import write_models
from smoke import change_params
from stages_by_hand import RunStage, succeeded

UNDER_DVC = {"DVC_STAGE": "a-stage"}


def test_options_of_generate_print_and_write_no_samples(run_stage: RunStage, tmp_path: Path) -> None:
    layout = write_models(tmp_path, "the quick brown fox jumps over the lazy dog traveller time\n" * 20)
    assert "small, temperature 1" in succeeded(run_stage("generate", "--model", "small", "--temperature", "1"))
    assert not layout.reports("generate").exists()


@pytest.mark.parametrize(
    ("environment", "corpus", "code", "stays"),
    [({}, "sample", 0, True), (UNDER_DVC, "sample", 0, False), (UNDER_DVC, "missing.txt", 2, True)],
    ids=["by hand", "under DVC", "without the corpus"],
)
def test_only_a_download_that_works_under_dvc_removes_stale_runs(
    environment: dict[str, str], corpus: str, code: int, stays: bool, run_stage: RunStage, tmp_path: Path
) -> None:
    layout = Layout(tmp_path)
    change_params(layout.params, {"download.corpus": corpus})
    for run in ("stale", "lstm"):
        layout.run(run).mkdir(parents=True)
    assert run_stage("download", **environment).returncode == code
    assert (layout.run("stale").exists(), layout.run("lstm").exists()) == (stays, True)


@pytest.mark.parametrize("stage", ["evaluate", "generate", "report"])
def test_without_any_config_a_stage_fails(stage: str, run_stage: RunStage, tmp_path: Path) -> None:
    missing = run_stage(stage, **UNDER_DVC)
    Layout(tmp_path).configs.mkdir(parents=True)
    for result in (missing, run_stage(stage, **UNDER_DVC)):
        assert result.returncode == 3, result.stderr
        assert re.fullmatch("error: .*\n", result.stderr)  # the way back is named after experiments only


# How many pages the system hands out for arrays that follow others of their size.
PAGE_FAULTS = f"""
import resource, sys
import numpy as np
sys.path.insert(0, {str(ROOT / "stages")!r})
import harness

if sys.argv[1:]:
    harness._keep_freed_memory()
faults = [0]
for _ in range(2):
    for _ in range(10):
        np.ones(5_000_000)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[2] - faults[1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can keep freed memory")
def test_later_arrays_take_no_new_pages() -> None:
    without, kept = (int(succeeded(run_python(PAGE_FAULTS, *arguments))) for arguments in ([], ["keep"]))
    assert kept < 10 < without
