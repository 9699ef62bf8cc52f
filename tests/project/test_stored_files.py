"""Damaged, swapped or newer stored files: every stage that reads them refuses them."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stages_by_hand import Finished, in_this_process
from workspace import Workspace, contents

CHAR, HELDOUT = "data/corpus/char", "data/heldout/char"
RUN, NGRAMS = "data/models/runs/plain", "data/models/ngrams/char"
SCORING = "score@plain score-ngrams@char"
# Each file, and the stages that read it.
READERS = {
    f"{CHAR}/vocab.json": f"ngrams@char train@plain heldout@char {SCORING} generate gradients",
    f"{CHAR}/train.npy": f"ngrams@char train@plain heldout@char {SCORING} generate gradients",
    f"{CHAR}/val.npy": f"ngrams@char train@plain heldout@char {SCORING} gradients",
    f"{CHAR}/test.npy": f"ngrams@char heldout@char {SCORING}",
    f"{CHAR}/unknown.json": "ngrams@char heldout@char score@plain",
    f"{CHAR}/unknown_test.npy": "ngrams@char heldout@char score@plain",
    "data/corpus/subword/tokenizer.json": "ngrams@subword heldout@subword score-ngrams@subword generate",
    f"{HELDOUT}/heldout.json": f"{SCORING} evaluate",
    f"{HELDOUT}/ends_test.npy": f"{SCORING} evaluate",
    f"{HELDOUT}/costs_val.npy": f"{SCORING} evaluate",
    f"{HELDOUT}/test_tokens.json": "evaluate",
    f"{RUN}/weights.safetensors": "score@plain generate",
    f"{RUN}/model.json": "score@plain generate",
    f"{NGRAMS}/counts*": "score-ngrams@char generate",
    f"{NGRAMS}/models.json": "score-ngrams@char generate",
    "data/configs/plain.json": "train@plain score@plain generate",  # evaluate only lists the names
    "data/scores/runs/plain/plain/score.json": "evaluate",
    "data/scores/runs/plain/plain/test.npy": "evaluate",
    "data/scores/runs/small-lstm/small-lstm+dynamic/score.json": "evaluate",
    "data/scores/ngrams/char/char-uniform/score.json": "evaluate",
    "data/scores/ngrams/char/char-uniform/val.npy": "evaluate",
}
CASES = [(path, stage) for path, stages in READERS.items() for stage in stages.split()]
# The first of these words in a path makes it the path of another file of its kind.
SWAPS = {
    "char-uniform": "char-laplace-1", "small-lstm/small-lstm+dynamic": "plain/plain", "plain": "small-lstm",
    "tokenizer": "unknown", "/train.npy": "/test.npy", "/val.npy": "/test.npy", "/test.npy": "/val.npy",
    "/char/": "/word/",
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
    word = next(word for word in SWAPS if word in name)
    shutil.copyfile(folder / name.replace(word, SWAPS[word]), path)


def from_the_future(path: Path, _folder: Path) -> None:
    if path.suffix == ".json":
        value = json.loads(path.read_text())
        path.write_text(json.dumps({**value, "format": 1000} if isinstance(value, dict) else [1000, *value]))
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
@pytest.mark.parametrize(("path", "stage"), CASES)
def test_a_damaged_file_is_named_and_refused(path: str, stage: str, workspace: Workspace, tmp_path: Path) -> None:
    accepted = []
    for fault in FAULTS:
        folder = copy_of_files(workspace, tmp_path / fault.__name__)
        damaged = min(folder.glob(path))  # there may be several files of counts
        fault(damaged, folder)
        before = contents(folder)
        result = run_without_outputs(stage, workspace, folder)
        if (path, fault) == ("data/configs/plain.json", missing):  # a run without a config is no run
            expected = (0, "") if stage == "generate" else (2, "error: there is no run 'plain', only small-lstm\n")
            assert (result.returncode, result.stderr) == expected
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
