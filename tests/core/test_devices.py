"""A device without double precision."""

import os
import subprocess
import sys

import pytest

from smoke import ROOT


@pytest.mark.slow
def test_everything_works_on_a_device_without_double_precision() -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tools")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "device_without_double.py")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    differences = dict(line.split() for line in done.stdout.splitlines())
    assert len(differences) == 6
    assert all(float(difference) < 1e-4 for difference in differences.values()), differences
