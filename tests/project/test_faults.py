"""What breaks, in which stage, and what must hold: the stage ends with one line and a code, and changes no file.

Full disks are small file systems of the tests. If mounting is not allowed, they are skipped.
"""

import json
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from disks import as_owner, fill, mounted
from smoke import change_params
from stages_by_hand import refused, succeeded
from workspace import Finished, Workspace

pytestmark = pytest.mark.slow

STAGES = [
    "download", "preprocess", "vocab@char", "ngrams@char", "sine", "configure", "train@plain", "score@plain",
    "score-ngrams@char", "evaluate", "generate", "gradients", "report",
]  # fmt: skip


class ByHand:
    """A stage, run by its command in ``dvc.lock`` in a folder with copies of what it reads."""

    def __init__(self, workspace: Workspace, stage: str, folder: Path) -> None:
        self.workspace, self.locked, self.folder = workspace, workspace.lock()[stage], folder
        self.prefix: list[str] = []
        self.before: Callable[[], None] | None = None

    def copy_inputs(self) -> None:
        names = [dep["path"] for dep in self.locked.get("deps", []) if not dep["path"].startswith(("src/", "stages/"))]
        for name in {"params.yaml", *names}:
            source, copy = self.workspace.folder / name, self.folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, copy)

    def __call__(self) -> Finished:
        words = shlex.split(self.locked["cmd"])
        return subprocess.run(
            [*self.prefix, sys.executable, *words[1:], "--root", str(self.folder)], cwd=self.workspace.folder,
            env=self.workspace.environment, capture_output=True, text=True, timeout=300, preexec_fn=self.before,
        )  # fmt: skip


@contextmanager
def full_disk(stage: ByHand) -> Iterator[None]:
    with mounted(stage.folder, "-t", "tmpfs", "-o", "size=48m", "tmpfs"):
        stage.copy_inputs()
        succeeded(stage())
        fill(stage.folder)
        yield


@contextmanager
def disk_that_fills_up(stage: ByHand) -> Iterator[None]:
    # No file may grow beyond 20 bytes: the first larger write fails halfway.
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    stage.copy_inputs()
    stage.before = limit
    yield


def unreadable(name: str) -> Callable[[ByHand], AbstractContextManager[None]]:
    @contextmanager
    def closed(stage: ByHand) -> Iterator[None]:
        stage.copy_inputs()
        change_params(stage.folder / "params.yaml", {"download.corpus": str(stage.folder / "mine.txt")})
        (stage.folder / "mine.txt").write_text("the sea\n" * 500)
        (stage.folder / name).chmod(0)
        stage.prefix = as_owner()
        yield

    return closed


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of each file but locks, which may be one that cannot be read."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock")]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    """Flip the lowest bit of a byte; in JSON of a digit, so that the file stays JSON and says something else."""
    content = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()] if path.suffix == ".json" else []
    content[places[len(places) // 2] if places else len(content) * 3 // 4] ^= 1
    path.write_bytes(content)


def from_the_future(path: Path) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1000}))
    else:
        path.write_bytes(b"\x09NEW" + path.read_bytes()[4:])


def damaged(name: str, damage: Callable[[Path], object] | str) -> Callable[[ByHand], AbstractContextManager[None]]:
    """Damage an input of a stage, or put another file of the finished run in its place."""

    @contextmanager
    def damage_one(stage: ByHand) -> Iterator[None]:
        stage.copy_inputs()
        path = stage.folder / name
        assert path.exists(), "the stage does not read it"
        if isinstance(damage, str):
            shutil.copyfile(stage.workspace.folder / damage, path)
        else:
            damage(path)
        yield

    return damage_one


class Fault(NamedTuple):
    """What breaks, in which stages, and their exit code and complaint."""

    breaks: Callable[[ByHand], AbstractContextManager[None]]
    stages: list[str]
    code: int
    complaint: str


# A trained network and the vocabulary that it is read with, and the file that takes its place if it is swapped.
STORED = {
    "data/models/runs/plain/weights.safetensors": "data/models/runs/small-lstm/weights.safetensors",
    "data/models/runs/plain/model.json": "data/models/runs/small-lstm/model.json",
    "data/corpus/char/vocab.json": "data/corpus/word/vocab.json",
}
DAMAGES: dict[str, Callable[[Path], object] | str] = {
    "truncated": truncated,
    "flipped": flipped,
    "newer": from_the_future,
    "missing": Path.unlink,
}
FAULTS = {
    "full disk": Fault(full_disk, STAGES, 5, "No space left on device"),
    "disk that fills up": Fault(disk_that_fills_up, STAGES, 5, "File too large"),
    "unreadable corpus": Fault(unreadable("mine.txt"), ["download"], 5, "mine.txt"),
    "unreadable text": Fault(unreadable("data/raw/corpus.txt"), ["preprocess"], 5, "corpus.txt"),
} | {
    f"{how} {Path(name).name}": Fault(damaged(name, damage), ["score@plain", "generate"], 3, "data/")
    for name, other in STORED.items()
    for how, damage in {**DAMAGES, "swapped": other}.items()
}


@pytest.mark.parametrize(("name", "stage"), [(name, stage) for name, fault in FAULTS.items() for stage in fault.stages])
def test_a_fault_ends_with_one_line_and_changes_no_file(
    name: str, stage: str, workspace: Workspace, tmp_path: Path
) -> None:
    fault, by_hand = FAULTS[name], ByHand(workspace, stage, tmp_path)
    with fault.breaks(by_hand):
        before = states(tmp_path)
        refused(by_hand(), fault.code, fault.complaint)
        assert states(tmp_path) == before
