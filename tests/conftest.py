"""Fixtures that several test modules share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from workspace import ROOT, RunStage

# Two threads on small tensors are slower than one, and far slower where tests share the cores.
# PyTorch reads this when it is imported, and stages that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No deadlines: the tests share the cores with others. `make test-all` chooses the long profile.
settings.register_profile("default", deadline=None)
settings.register_profile("long", max_examples=2000, deadline=None)
settings.load_profile("default")

BOOK_FILE = "timemachine.txt"


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own folder."""
    return ROOT


@pytest.fixture(scope="session")
def book() -> Path:
    """The book, where a data folder has it."""
    folder = os.environ.get("SEQLM_DATA_DIR")
    if not folder or not (Path(folder) / BOOK_FILE).exists():
        pytest.skip(f"SEQLM_DATA_DIR names no folder with {BOOK_FILE}")
    return Path(folder) / BOOK_FILE


@pytest.fixture
def run_stage(tmp_path: Path) -> RunStage:
    """Run a stage's script by hand in an empty folder that has ``params.yaml`` and the registry."""
    (tmp_path / "data").mkdir()
    for name in ("params.yaml", "data/corpora.yaml", "data/sample.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def run(stage: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "stages" / f"{stage}.py"), *arguments],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
