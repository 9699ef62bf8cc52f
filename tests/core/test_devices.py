"""A device without double precision."""

import pytest

from smoke import ROOT
from stages_by_hand import run_python, succeeded


@pytest.mark.slow
def test_everything_works_on_a_device_without_double_precision() -> None:
    printed = succeeded(run_python((ROOT / "tests" / "device_without_double.py").read_text(encoding="utf-8")))
    differences = dict(line.split() for line in printed.splitlines())
    assert len(differences) == 6
    assert all(float(difference) < 1e-4 for difference in differences.values()), differences
