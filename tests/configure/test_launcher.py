"""The launcher is checked before the first training needs it."""

from pathlib import Path

import pytest

from smoke import change_params
from stages_by_hand import RunStage


@pytest.mark.parametrize(
    ("launcher", "complaint"),
    [
        ("pyton", "launcher = 'pyton': no such program on PATH"),
        ("'pyton", 'launcher = "\'pyton": No closing quotation'),
        ("python -X utf8", ""),
    ],
)
def test_a_launcher_that_is_missing_is_refused(
    launcher: str, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    change_params(tmp_path / "params.yaml", {"launcher": launcher})
    result = run_stage("configure")
    assert result.returncode == (2 if complaint else 0), result.stderr
    assert result.stderr == (f"error: params.yaml: {complaint}\n" if complaint else "")
