"""The real pipeline, by the real DVC, on the sample corpus with small settings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from conftest import ROOT

HEADLESS = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_TERMINAL_PROMPT": "0"}
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "cache", "tmp", "reports", "checkpoints", "logs", ".*_cache", ".hypothesis", "raw",
    "text", "corpus", "models", "configs", "smoke",
)  # fmt: skip


class Workspace:
    """A copy of the project in a Git repository of its own, run by its own code."""

    def __init__(self, folder: Path, traces: Path) -> None:
        self.folder = folder
        self.traces = traces
        traces.mkdir()
        shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
        (folder / "dvc.lock").unlink(missing_ok=True)
        self._environment = os.environ | HEADLESS | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder / 'src'}:{folder / 'tests' / 'tracing'}",
            "SEQLM_TRACE": str(traces),
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(folder.parent / "cache"),
        }  # fmt: skip
        self._environment.pop("SEQLM_DATA_DIR", None)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=540
        )
        if check and result.returncode:
            raise AssertionError(f"{' '.join(command)}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", *IDENTITY, "commit", "--quiet", "--message", message)

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "reports/evaluate/metrics.json").read_text())
        return found

    def update_params(self, changes: dict[str, Any]) -> None:
        yaml = YAML()
        path = self.folder / "params.yaml"
        params = yaml.load(path.read_text())
        for dotted, value in changes.items():
            *parents, key = dotted.split(".")
            section = params
            for parent in parents:
                section = section[parent]
            section[key] = value
        with path.open("w") as file:
            yaml.dump(params, file)


# Small settings that still exercise every stage: two runs, few epochs, small models.
SMALL = {
    "num_threads": 1,
    "download.corpus": "sample",
}
