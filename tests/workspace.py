"""A copy of the project in a Git repository of its own, in which tests run the real DVC."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock
from ruamel.yaml import YAML

from smoke import change_params, copy_project

HEADLESS = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_TERMINAL_PROMPT": "0"}
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org")


class Workspace:
    """A copy of the project in a Git repository of its own, run by its own code."""

    def __init__(self, folder: Path, traces: Path) -> None:
        self.folder = folder
        self.traces = traces
        self.opened: dict[str, set[str]] = {}
        if not folder.exists():
            traces.mkdir(parents=True)
            copy_project(folder)
        self.environment = os.environ | HEADLESS | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder / 'src'}:{folder / 'tests' / 'tracing'}",
            "SEQLM_TRACE": str(traces),
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(folder.parent / "cache"),
            # Loops of equal sources are compiled once, for the tests too.
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(platformdirs.user_cache_path("seqlm"))),
        }  # fmt: skip
        # Python keeps what it compiles, as it does by default: DVC must not see those folders.
        for name in ("SEQLM_DATA_DIR", "PYTHONDONTWRITEBYTECODE"):
            self.environment.pop(name, None)

    def run(self, *command: str, check: bool = True, timeout: float = 540) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=timeout
        )
        if check and result.returncode:
            raise AssertionError(f"{' '.join(command)}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command in a session of its own and let it run; what it says goes to a file beside the workspace."""
        with (self.folder.parent / "started.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def begin(self, params: dict[str, Any]) -> None:
        """Make the Git repository and commit it with these settings."""
        self.run("git", "init", "--quiet", "--initial-branch=main")
        self.update_params(params)
        self.commit("Begin")

    def lock(self) -> dict[str, Any]:
        """Return what ``dvc.lock`` says of each stage: its command and the hashes of all it reads and writes."""
        found: dict[str, Any] = YAML(typ="safe").load(self.folder / "dvc.lock")["stages"]
        return found

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", *IDENTITY, "commit", "--quiet", "--message", message)

    def show_changed_settings(self) -> None:
        """Let Git see that DVC changed the settings, in this second and to as many bytes as they were.

        Git compares sizes and whole seconds, and DVC notes the file that it is about to change.
        """
        (self.folder / "params.yaml").touch()

    def restore(self) -> None:
        """Go back to the last commit and its data."""
        self.show_changed_settings()
        self.run("git", "reset", "--hard", "--quiet")
        self.run("git", "clean", "-d", "--force", "--quiet")
        self.run("dvc", "checkout", "--force", "--quiet")

    def keep_traces(self) -> None:
        """Remember what each stage of the last run opened: later runs write over it."""
        for path in self.traces.iterdir():
            lines = path.read_text().splitlines()
            self.opened[path.name] = {line for line in lines if "__pycache__" not in line}

    def measures(self) -> dict[str, Any]:
        """Return every model's measures on every split."""
        found: dict[str, Any] = json.loads((self.folder / "reports/evaluate/metrics.json").read_text())
        return found

    def update_params(self, changes: dict[str, Any]) -> None:
        change_params(self.folder / "params.yaml", changes)


def finished(base: Path, params: dict[str, Any]) -> Workspace:
    """Return a committed workspace below ``base`` in which the pipeline ran once with these settings."""
    workspace = Workspace(base / "project", base / "traces")
    workspace.begin(params)
    workspace.run("dvc", "repro")
    return workspace


def copy_of_finished(shared: Path, base: Path, params: dict[str, Any]) -> Workspace:
    """Return what :func:`finished` does, below ``base``: a copy of the one in ``shared``, which is made if need be."""
    original, done = shared / "finished", shared / "finished.done"
    with FileLock(shared / "finished.lock"):
        if not done.exists():
            finished(original, params)
            done.touch()
    shutil.copytree(original, base, symlinks=True, dirs_exist_ok=True)
    return Workspace(base / "project", base / "traces")


def install(folder: Path) -> None:
    """Give a copy of the project this suite's environment as its .venv."""
    environment = folder / ".venv"
    environment.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        if (Path(sys.prefix) / name).exists():
            (environment / name).symlink_to(Path(sys.prefix) / name)
    (environment / "installed").touch()


def stages_run(said: str) -> list[str]:
    """Return the stages that DVC says it ran."""
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage")]
