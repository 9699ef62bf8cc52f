"""Damaged, swapped or newer stored files: every stage that reads them refuses them."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stages_by_hand import Finished, in_this_process
from workspace import Workspace, contents

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


def emptied(path: Path, _folder: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path, _folder: Path) -> None:
    """Flip the lowest bit of a byte; in JSON of a digit, so that the file stays JSON and says something else."""
    content = bytearray(path.read_bytes())
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


def copy_of_files(workspace: Workspace, folder: Path) -> Path:
    """Copy the files that stages read to a new folder, to damage them there."""
    for name in ("data", "reports/train"):
        shutil.copytree(workspace.folder / name, folder / name)
    shutil.copyfile(workspace.folder / "params.yaml", folder / "params.yaml")
    return folder


def run_without_outputs(stage: str, workspace: Workspace, folder: Path) -> Finished:
    """Run a stage of the workspace in ``folder``, after removing the outputs it has there."""
    locked = workspace.lock()[stage]
    for out in locked["outs"]:
        path = folder / out["path"]
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    words = shlex.split(locked["cmd"])
    place = next(place for place, word in enumerate(words) if word.startswith("stages/"))
    return in_this_process(folder)(Path(words[place]).stem, *words[place + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize(("path", "stage"), [(path, stage) for path, stages in READERS.items() for stage in stages])
def test_a_damaged_file_is_named_and_refused(path: str, stage: str, workspace: Workspace, tmp_path: Path) -> None:
    accepted = []
    for fault in FAULTS:
        folder = copy_of_files(workspace, tmp_path / fault.__name__)
        damaged = min(folder.glob(path))  # there may be several files of counts
        fault(damaged, folder)
        before = contents(folder)
        result = run_without_outputs(stage, workspace, folder)
        if (path, fault) == (CONFIG, missing) and stage in ("evaluate", "generate"):
            assert result.returncode == 0, result.stderr  # a run without a config is no run
            continue
        # If two files do not fit together, either may be named.
        name = "data/" if fault is swapped else str(damaged.relative_to(folder))
        is_one_line = result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
        # Nothing is changed, and nothing written.
        is_unchanged = contents(folder).items() <= before.items()
        if (result.returncode, is_one_line, name in result.stderr, is_unchanged) != (3, True, True, True):
            accepted.append(f"{fault.__name__}: code {result.returncode}, {result.stderr}")
        shutil.rmtree(folder)
    assert not accepted, "\n".join(accepted)
