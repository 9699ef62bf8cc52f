"""Stored files that were damaged, swapped or written by another version: every stage that reads them refuses them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import workspace
from workspace import ROOT
from smoke import SMALL
from workspace import Workspace

CHAR, WORD, RUNS, NGRAMS = "data/corpus/char", "data/corpus/word", "data/models/runs", "data/models/ngrams"
VOCAB, TRAIN, VAL, TEST = (f"{CHAR}/{name}" for name in ("vocab.json", "train.npy", "val.npy", "test.npy"))
WEIGHTS, MODEL = f"{RUNS}/plain/weights.safetensors", f"{RUNS}/plain/model.json"
COUNTS, MODELS = f"{NGRAMS}/char/counts*", f"{NGRAMS}/char/models.json"
CONFIG = "data/configs/plain.json"

COMMANDS = {
    "ngrams": [
        "--kind",
        "char",
        "--corpus",
        CHAR,
        "--models",
        "new/models",
        "--reports",
        "new/reports",
        "--work",
        "new",
    ],
    "train": ["--config", CONFIG, "--models", "new/models", "--reports", "new/reports", "--checkpoints", "new"],
    "evaluate": ["--details", "new/details", "--reports", "new/reports"],
    "generate": ["--reports", "new/reports"],
    "gradients": ["--reports", "new/reports"],
}

READERS = {
    VOCAB: ["ngrams", "train", "evaluate", "generate", "gradients"],
    TRAIN: ["ngrams", "train", "evaluate", "generate", "gradients"],
    VAL: ["ngrams", "train", "evaluate"],
    TEST: ["evaluate"],
    WEIGHTS: ["evaluate", "generate"],
    MODEL: ["evaluate", "generate"],
    COUNTS: ["evaluate", "generate"],
    MODELS: ["evaluate", "generate"],
    CONFIG: ["train", "evaluate", "generate"],
}

OTHERS = {
    VOCAB: f"{WORD}/vocab.json", TRAIN: TEST, VAL: TEST, TEST: VAL, WEIGHTS: f"{RUNS}/small-lstm/weights.safetensors",
    MODEL: f"{RUNS}/small-lstm/model.json", MODELS: f"{NGRAMS}/word/models.json",
    CONFIG: "data/configs/small-lstm.json",
}  # fmt: skip


def truncated(path: Path, _folder: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path, _folder: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path, _folder: Path) -> None:
    """Flip the lowest bit of a digit or byte of the content."""
    content = bytearray(path.read_bytes())
    # In JSON the last digit of a number: the file stays JSON and says something else.
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()] if path.suffix == ".json" else []
    content[places[len(places) // 2] if places else len(content) * 3 // 4] ^= 1
    path.write_bytes(content)


def swapped(path: Path, folder: Path) -> None:
    name = str(path.relative_to(folder))
    shutil.copyfile(folder / OTHERS.get(name, name.replace("/char/", "/word/")), path)


def from_the_future(path: Path, _folder: Path) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1000}))
    elif path.suffix == ".npy":
        # Byte 6 of a .npy file is its format's major version.
        path.write_bytes(path.read_bytes()[:6] + b"\x09" + path.read_bytes()[7:])
    else:
        path.write_bytes(b"\x09NEW" + path.read_bytes()[4:])


def missing(path: Path, _folder: Path) -> None:
    path.unlink()


FAULTS: list[Callable[[Path, Path], None]] = [truncated, emptied, flipped, swapped, from_the_future, missing]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which the pipeline ran once."""
    return workspace.finished(tmp_path_factory.mktemp("stored"), SMALL)


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path) -> Path:
    """A copy of the finished workspace's files to damage."""
    folder = tmp_path / "copy"
    for name in ("data", "reports/train"):
        shutil.copytree(finished.folder / name, folder / name)
    shutil.copyfile(finished.folder / "params.yaml", folder / "params.yaml")
    return folder


def run(stage: str, finished: Workspace, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / f"stages/{stage}.py"), *COMMANDS[stage]],
        cwd=folder, env=finished.environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


CASES = [
    pytest.param(path, stage, fault, id=f"{path.removeprefix('data/')} {fault.__name__} in {stage}")
    for path, stages in READERS.items()
    for stage in stages
    for fault in FAULTS
]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "stage", "fault"), CASES)
def test_a_stored_file_that_is_not_as_written_is_named_and_refused(
    path: str, stage: str, fault: Callable[[Path, Path], None], finished: Workspace, copy: Path
) -> None:
    # The first of the files with counts, where they are more than one.
    path = str(min(copy.glob(path)).relative_to(copy))
    fault(copy / path, copy)
    result = run(stage, finished, copy)
    if (path, fault) == (CONFIG, missing) and stage != "train":
        # A run without a config is no run.
        assert result.returncode == 0, result.stderr
        return
    assert_refused(result, path, fault)
    assert not [found for found in (copy / "new").rglob("*") if found.is_file() and found.suffix != ".lock"]


def assert_refused(result: subprocess.CompletedProcess[str], path: str, fault: Callable[[Path, Path], None]) -> None:
    assert result.returncode == 3, result.stdout + result.stderr
    assert result.stderr.startswith("error: "), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    # Which of two files that do not fit together is wrong, nothing can tell: either may be named.
    assert (path if fault is not swapped else "data/") in result.stderr, result.stderr
