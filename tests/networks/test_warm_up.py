"""``make repro`` compiles the loops of networks before the first training asks for them."""

import os

import pytest

from smoke import ROOT
from stages_by_hand import run_python, succeeded

# A training of another kind, with layers, dropout and threads, finds all loops that it needs.
WARM_UP = """
import warm_up
from numba.core import event
warm_up.main()
from small_training import config, trained
with event.install_recorder("numba:compile") as compiled:
    trained(config(model="lstm", num_layers=2, dropout=0.2, embedding="learned", num_threads=2, optimizer="adamw"))
print(len(compiled.buffer))
"""


@pytest.mark.slow
def test_a_training_finds_all_loops_compiled() -> None:
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests", "tools"))
    assert succeeded(run_python(WARM_UP, PYTHONPATH=path)) == "0\n"
