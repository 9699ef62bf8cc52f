"""``make verify`` compares two runs from scratch and names what differs."""

import subprocess
import sys

import pytest

from smoke import ROOT
from verify import differences, hashes


def test_differences_are_named() -> None:
    first = hashes({"a": {"outs": [{"path": "x", "md5": "1"}, {"path": "y", "md5": "2"}]}})
    second = hashes({"a": {"outs": [{"path": "x", "md5": "1"}, {"path": "z", "md5": "3"}]}})
    assert list(differences(first, first)) == []
    assert list(differences(first, second)) == ["a: y: 2 and missing", "a: z: missing and 3"]


@pytest.mark.slow
def test_two_runs_from_scratch_give_the_same_hashes() -> None:
    command = [sys.executable, str(ROOT / "tools/verify.py"), "--small"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    *_, last = result.stdout.splitlines()
    equal, _, total, *_ = last.split()  # "80 of 80 outputs are equal"
    assert equal == total
    assert int(total) > 50
