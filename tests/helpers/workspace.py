"""Git repositories in which tests run the real DVC: copies of the project, and pipelines of a few lines."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import platformdirs
from ruamel.yaml import YAML

from default_params import PARAMS_FILE
from smoke import ROOT, change_params, copy_project, environment_of_python

HEADLESS = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_TERMINAL_PROMPT": "0"}
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org")
Finished = subprocess.CompletedProcess[str]


class Repository:
    """A folder, and the environment in which commands run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment_of_python() | HEADLESS

    def run(self, *command: str, check: bool = True, timeout: float = 1800, **environment: str) -> Finished:
        variables = self.environment | environment
        result = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=timeout
        )
        if check and result.returncode:
            raise AssertionError(f"{' '.join(command)}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a command in its own session; its output goes to a file beside the folder."""
        with (self.folder.parent / "started.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def git(self, *arguments: str) -> str:
        return self.run("git", *IDENTITY, *arguments).stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def tool(self, name: str, *options: str) -> Finished:
        """Run a script of the project's ``tools/`` here, whatever its exit code."""
        return self.run(sys.executable, str(ROOT / "tools" / name), *options, check=False)


class TinyRepository(Repository):
    """A repository with a pipeline of shell commands, which has run and is committed."""

    @classmethod
    def make(cls, folder: Path, files: Mapping[str, str]) -> Self:
        repository = cls(folder)
        for name, text in files.items():
            (folder / name).write_text(text)
        repository.git("init", "--quiet", "--initial-branch=main")
        repository.run("dvc", "init", "--quiet")
        repository.run("dvc", "repro")
        repository.commit("A run")
        return repository

    def copy_to(self, folder: Path) -> Self:
        shutil.copytree(self.folder, folder, symlinks=True)
        return type(self)(folder)


class Workspace(Repository):
    """A copy of the project in ``base/project``, with the default settings, run by its own code."""

    def __init__(self, base: Path) -> None:
        super().__init__(base / "project")
        self.traces = base / "traces"
        self.traced: dict[str, dict[str, list[str]]] = {}
        if not self.folder.exists():
            self.traces.mkdir(parents=True)
            copy_project(self.folder)
            shutil.copyfile(PARAMS_FILE, self.folder / "params.yaml")
        self.environment |= {
            "PYTHONPATH": f"{self.folder / 'src'}:{self.folder / 'tests' / 'tracing'}",
            "SEQLM_TRACE": str(self.traces),
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(base / "cache"),
            # Compile the loops of equal sources once for all tests.
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(platformdirs.user_cache_path("seqlm"))),
        }
        # Python writes __pycache__, as it does by default: DVC must not see those folders.
        for name in ("SEQLM_DATA_DIR", "PYTHONDONTWRITEBYTECODE"):
            self.environment.pop(name, None)

    def begin(self, params: dict[str, Any]) -> None:
        """Make the Git repository and commit it with these settings."""
        self.git("init", "--quiet", "--initial-branch=main")
        self.update_params(params)
        self.commit("Begin")

    def update_params(self, changes: dict[str, Any]) -> None:
        change_params(self.folder / "params.yaml", changes)

    def lock(self) -> Any:
        return YAML(typ="safe").load(self.folder / "dvc.lock")["stages"]

    def metrics(self) -> Any:
        return json.loads((self.folder / "reports/evaluate/metrics.json").read_text())

    def keep_traces(self) -> None:
        """Remember what each stage of the last run opened and read; later runs overwrite the traces."""
        self.traced = {path.name: json.loads(path.read_text()) for path in self.traces.iterdir()}

    def restore(self) -> None:
        """Go back to the last commit and its data."""
        self.git("reset", "--hard", "--quiet")
        self.git("clean", "-d", "--force", "--quiet")
        self.run("dvc", "checkout", "--force", "--quiet")

    def install(self) -> None:
        """Give the copy this suite's environment as its .venv, for ``make``."""
        environment = self.folder / ".venv"
        environment.mkdir()
        for name in ("bin", "lib", "pyvenv.cfg"):
            if (Path(sys.prefix) / name).exists():
                (environment / name).symlink_to(Path(sys.prefix) / name)
        stamp = environment / "installed"
        stamp.write_text(f"{environment.resolve()}\n")
        os.utime(stamp, (2**31, 2**31))  # newer than the pins, also after Git has written these again


def finished(base: Path, params: dict[str, Any]) -> Workspace:
    """Return a committed workspace below ``base`` in which the pipeline ran once with these settings."""
    workspace = Workspace(base)
    workspace.begin(params)
    workspace.run("dvc", "repro")
    return workspace


def stages_run(output: str) -> list[str]:
    """Return the stages that ran, according to the output of ``dvc repro``."""
    return [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")]


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return as soon as the condition holds; raise AssertionError if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
