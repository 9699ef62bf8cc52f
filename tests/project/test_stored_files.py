"""Damaged, swapped or newer files that a user may bring along: every stage that reads them refuses them."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stages_by_hand import Finished, in_this_process
from workspace import Workspace, contents

RUN, VOCAB = "data/models/runs/plain", "data/corpus/char/vocab.json"
# A trained network, and the vocabulary that it is read with; each file, and the file that takes its place if swapped.
SWAPS = {
    f"{RUN}/weights.safetensors": "data/models/runs/small-lstm/weights.safetensors",
    f"{RUN}/model.json": "data/models/runs/small-lstm/model.json",
    VOCAB: "data/corpus/word/vocab.json",
}


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
    shutil.copyfile(folder / SWAPS[path.relative_to(folder).as_posix()], path)


def from_the_future(path: Path, _folder: Path) -> None:
    if path.suffix == ".json":
        value = json.loads(path.read_text())
        path.write_text(json.dumps({**value, "format": 1000} if isinstance(value, dict) else [1000, *value]))
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
@pytest.mark.parametrize("stage", ["score@plain", "generate"])
@pytest.mark.parametrize("path", SWAPS)
def test_a_damaged_file_is_named_and_refused(path: str, stage: str, workspace: Workspace, tmp_path: Path) -> None:
    accepted = []
    for fault in FAULTS:
        folder = copy_of_files(workspace, tmp_path / fault.__name__)
        fault(folder / path, folder)
        before = contents(folder)
        result = run_without_outputs(stage, workspace, folder)
        # If two files do not fit together, either may be named.
        name = "data/" if fault is swapped else path
        is_one_line = result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
        # Nothing is changed, and nothing written.
        is_unchanged = contents(folder).items() <= before.items()
        if (result.returncode, is_one_line, name in result.stderr, is_unchanged) != (3, True, True, True):
            accepted.append(f"{fault.__name__}: code {result.returncode}, {result.stderr}")
        shutil.rmtree(folder)
    assert not accepted, "\n".join(accepted)
