"""``tools/warm_up.py`` compiles, or loads from the cache, all that trainings and scores of networks call."""

from smoke import ROOT
from stages_by_hand import run_python, succeeded

SCRIPT = """
import runpy, sys
from seqlm.core.compiling import TolerantCache

wanted, load = set(), TolerantCache.load_overload

def noting(cache, signature, context):
    wanted.add((cache._name, signature))
    return load(cache, signature, context)

TolerantCache.load_overload = noting
runpy.run_path(sys.argv[1], run_name="__main__")
warmed = set(wanted)
from small_training import config, trained
for changes in ({}, {"model": "gru", "optimizer": "adamw"}, {"model": "lstm", "num_layers": 2, "dropout": 0.5}):
    trained(config(**changes, num_hiddens=32))
print(len(warmed), wanted - warmed)
"""


def test_after_a_warm_up_trainings_load_no_other_loops() -> None:
    number, missing = succeeded(run_python(SCRIPT, ROOT / "tools" / "warm_up.py")).split(maxsplit=1)
    assert (int(number) > 0, missing) == (True, "set()\n")
