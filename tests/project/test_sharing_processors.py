"""How the threads of a stage wait: asleep, so that other work on the same processors does not slow them."""

from pathlib import Path

import pytest

from small_training import prepare_stage
from stages_by_hand import RunStage


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [({}, "OMP_WAIT_POLICY = 'PASSIVE'"), ({"OMP_WAIT_POLICY": "active"}, "OMP_WAIT_POLICY = 'ACTIVE'")],
    ids=["by default", "as the user chose"],
)
def test_pytorch_is_loaded_with_the_policy(
    chosen: dict[str, str], shown: str, run_script: RunStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    prepare_stage(tmp_path, "the sea came in and the sea went out again\n" * 10, num_epochs=1)
    # The library says what it has read when it is loaded.
    result = run_script("train", "--run", "x", OMP_DISPLAY_ENV="true", **chosen)
    assert result.returncode == 0, result.stderr
    if "OMP_WAIT_POLICY" not in result.stderr:
        pytest.skip("this PyTorch's OpenMP does not say what it has read")
    assert shown in result.stderr
