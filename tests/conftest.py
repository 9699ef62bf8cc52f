"""Fixtures that several test modules share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from browsers import CHROMIUM
from smoke import ROOT
from stages_by_hand import RunStage, in_this_process, prepare

# On small tensors two threads are slower than one, and far slower if tests share the cores. PyTorch reads this when it
# is imported, and the stages that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts background jobs with Ctrl-C ignored, and so would be what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: tests share the cores. `make test-all` uses the long profile.
# The same examples each time; the long profile draws new ones.
settings.register_profile("default", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("default")

# Workers begin with the longest modules, so that none is left with a long one at the end.
LONGEST = (
    "project/test_pipeline.py",
    "train/test_train.py",
    "core/test_compiling.py",
    "pipeline/report/test_playground.py",
)


def pytest_configure() -> None:
    if os.environ.get("SEQLM_REQUIRE_CHROMIUM") and CHROMIUM is None:
        raise pytest.UsageError("SEQLM_REQUIRE_CHROMIUM is set, and there is no Chromium on PATH")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture
def run_stage(tmp_path: Path) -> RunStage:
    """Runs a stage by hand, in this process and in a folder with ``params.yaml`` and the registry."""
    return in_this_process(prepare(tmp_path))
