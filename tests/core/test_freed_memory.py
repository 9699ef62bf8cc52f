"""Freed memory is used again."""

import platform

import pytest

from stages_by_hand import run_python, succeeded

# Numbers of page faults of arrays that follow each other: of the first ones, then of the others.
SCRIPT = """
import resource, sys
import numpy as np
from seqlm.core.processes import keep_freed_memory

if sys.argv[1:]:
    keep_freed_memory()
faults = [0]
for _ in range(2):
    for _ in range(10):
        np.ones(5_000_000)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[2] - faults[1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can keep freed memory")
def test_later_arrays_take_no_new_pages() -> None:
    without, kept = (int(succeeded(run_python(SCRIPT, *arguments))) for arguments in ([], ["keep"]))
    assert kept < 10 < without
