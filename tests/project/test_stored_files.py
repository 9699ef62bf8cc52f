"""Stored files that were damaged, swapped or written by another version: every stage that reads them refuses them."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import workspace
from smoke import SMALL
from stages_by_hand import Finished, in_this_process
from workspace import Workspace

CHAR, WORD, RUNS, NGRAMS = "data/corpus/char", "data/corpus/word", "data/models/runs", "data/models/ngrams"
VOCAB, TRAIN, VAL, TEST = (f"{CHAR}/{name}" for name in ("vocab.json", "train.npy", "val.npy", "test.npy"))
UNKNOWN, UNKNOWN_OF_TEST = f"{CHAR}/unknown.json", f"{CHAR}/unknown_test.npy"
WEIGHTS, MODEL = f"{RUNS}/plain/weights.safetensors", f"{RUNS}/plain/model.json"
COUNTS, MODELS = f"{NGRAMS}/char/counts*", f"{NGRAMS}/char/models.json"
CONFIG = "data/configs/plain.json"
SCORE, NATS = (f"data/scores/runs/plain/plain/{name}" for name in ("score.json", "test.npy"))
NGRAM_SCORE, NGRAM_NATS = (f"data/scores/ngrams/char/char-uniform/{name}" for name in ("score.json", "val.npy"))
HELDOUT, ENDS = (f"data/heldout/char/{name}" for name in ("heldout.json", "ends_test.npy"))
COSTS, TOKENS = (f"data/heldout/char/{name}" for name in ("costs_val.npy", "test_tokens.json"))
PIECES = "data/corpus/subword/tokenizer.json"
DYNAMIC_SCORE = "data/scores/runs/small-lstm/small-lstm+dynamic/score.json"

SCORING = ["score@plain", "score-ngrams@char"]
READERS = {
    VOCAB: ["ngrams@char", "train@plain", "heldout@char", *SCORING, "generate", "gradients"],
    TRAIN: ["ngrams@char", "train@plain", "heldout@char", *SCORING, "generate", "gradients"],
    VAL: ["ngrams@char", "train@plain", "heldout@char", *SCORING, "gradients"],
    TEST: ["ngrams@char", "heldout@char", *SCORING],
    UNKNOWN: ["ngrams@char", "heldout@char", "score@plain"],
    UNKNOWN_OF_TEST: ["ngrams@char", "heldout@char", "score@plain"],
    PIECES: ["ngrams@subword", "heldout@subword", "score-ngrams@subword", "generate"],
    HELDOUT: [*SCORING, "evaluate"],
    ENDS: [*SCORING, "evaluate"],
    COSTS: [*SCORING, "evaluate"],
    TOKENS: ["evaluate"],
    WEIGHTS: ["score@plain", "generate"],
    MODEL: ["score@plain", "generate"],
    COUNTS: ["score-ngrams@char", "generate"],
    MODELS: ["score-ngrams@char", "generate"],
    CONFIG: ["train@plain", "score@plain", "evaluate", "generate"],
    SCORE: ["evaluate"],
    NATS: ["evaluate"],
    NGRAM_SCORE: ["evaluate"],
    NGRAM_NATS: ["evaluate"],
    DYNAMIC_SCORE: ["evaluate"],
}

OTHERS = {
    VOCAB: f"{WORD}/vocab.json", TRAIN: TEST, VAL: TEST, TEST: VAL, WEIGHTS: f"{RUNS}/small-lstm/weights.safetensors",
    MODEL: f"{RUNS}/small-lstm/model.json", MODELS: f"{NGRAMS}/word/models.json",
    CONFIG: "data/configs/small-lstm.json", SCORE: "data/scores/runs/small-lstm/small-lstm/score.json",
    NATS: "data/scores/runs/small-lstm/small-lstm/test.npy",
    NGRAM_SCORE: "data/scores/ngrams/char/char-laplace-1/score.json",
    NGRAM_NATS: "data/scores/ngrams/char/char-laplace-1/val.npy", DYNAMIC_SCORE: SCORE,
    PIECES: "data/corpus/subword/unknown.json",
}  # fmt: skip


def truncated(path: Path, _folder: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fresh_folder(path: Path, _folder: Path) -> None:
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


FAULTS: list[Callable[[Path, Path], None]] = [truncated, fresh_folder, flipped, swapped, from_the_future, missing]


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


def run_without_outputs(stage: str, finished: Workspace, folder: Path) -> Finished:
    """Run a stage of the finished workspace in ``folder``, after removing what it wrote there."""
    locked = finished.lock()[stage]
    for out in locked["outs"]:
        path = folder / out["path"]
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    words = shlex.split(locked["cmd"])
    place = next(place for place, word in enumerate(words) if word.startswith("stages/"))
    return in_this_process(folder)(Path(words[place]).stem, *words[place + 1 :])


def contents(folder: Path) -> dict[str, bytes]:
    """Return what every file holds, but for the locks of trainings."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


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
    before = contents(copy)
    result = run_without_outputs(stage, finished, copy)
    if (path, fault) == (CONFIG, missing) and stage in ("evaluate", "generate"):
        # A run without a config is no run.
        assert result.returncode == 0, result.stderr
        return
    assert_refused(result, path, fault)
    # Nothing was changed, and nothing written.
    assert contents(copy).items() <= before.items()


def assert_refused(result: Finished, path: str, fault: Callable[[Path, Path], None]) -> None:
    assert result.returncode == 3, result.stdout + result.stderr
    assert result.stderr.startswith("error: "), result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    # Which of two files that do not fit together is wrong, nothing can tell: either may be named.
    assert (path if fault is not swapped else "data/") in result.stderr, result.stderr
