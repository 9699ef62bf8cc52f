"""Settings that DVC or a late stage would refuse in many words are refused first, in one line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from default_params import PARAMS_FILE
from smoke import ROOT
from stages_by_hand import RunStage, prepare, refused


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((r"(?m)^    token: char\n", ""), "token: missing"),
        ((r"(?m)^runs:", "run:"), "params.yaml: run: unknown setting: did you mean runs?"),
        ((r"(?s).*", ""), "params.yaml: must be a mapping"),
        ((r"(?m)^  lr: .*$", "  lr: 0,5"), "train.lr = '0,5': should be a valid number"),
        ((r"(?m)^  lr: ", "  lrr: "), "train.lrr: unknown setting: did you mean lr?"),
        ((r"(?m)^runs:$", "runs:\n  my run: {token: char}"), "runs.my run"),
        ((r"(?m)^runs:$", "runs:\n  LSTM: {token: char}"), "LSTM and lstm differ only in small and capital letters"),
        ((r"(?m)^device: cpu", "device: mps"), "device: mps: this machine has none"),
        ((r"(?m)^    token: char$", "    token: char\n    device: mps"), "device: mps: this machine has none"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    change: tuple[str, str], complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    prepare(tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(re.sub(*change, params.read_text(), count=1))
    before = sorted(tmp_path.rglob("*"))
    refused(run_stage("configure", "--check"), 5 if "device" in complaint else 2, complaint)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "code", "complaint"),
    [
        ("train.lr=0,5", 1, "train.lr=0,5: a comma separates several values"),
        ("train.lrr=1", 1, "Could not override 'train.lrr'. Did you mean train.lr?"),
        ("train.lr=-1", 2, "params.yaml: train.lr = -1: should be greater than 0"),
        ("+runs.x={model: gru}", 2, "params.yaml: runs.x.token: missing"),
    ],
)
def test_changes_of_an_experiment_are_refused_before_dvc_starts(
    change: str, code: int, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "params.yaml").write_bytes(PARAMS_FILE.read_bytes())
    command = [sys.executable, str(ROOT / "tools" / "preset.py"), "quick", "-S", change]
    refused(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True), code, complaint)
