"""Run the whole pipeline on the sample text with small settings, in a copy of the project.

The copy is in a temporary folder and removed at the end: settings, results, lock file and
cache of the project itself do not change.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
# Dotted names of settings and their values.
SMALL: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "tools" / "small.yaml")
# What a run makes; the copy makes its own.
_MADE = ("dvc.lock", "reports/")


def overlaid(params: Any, changes: dict[str, Any]) -> Any:
    """Return ``params`` with the values of dotted names such as ``train.lr`` changed."""
    for dotted, value in changes.items():
        *parents, key = dotted.split(".")
        section = params
        for parent in parents:
            section = section[parent]
        section[key] = value
    return params


def change_params(path: Path, changes: dict[str, Any]) -> None:
    """Set the values of dotted names in a ``params.yaml``; comments stay."""
    yaml = YAML()
    params = overlaid(yaml.load(path.read_text(encoding="utf-8")), changes)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yaml.dump(params, file)


def copy_project(folder: Path, root: Path = ROOT, without: tuple[str, ...] = _MADE) -> None:
    """Copy the files of a repository that Git does not ignore to ``folder``, including uncommitted changes."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in sorted(set(listed.split("\0")) - {""}):
        if not name.startswith(without) and (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, folder / name)


def environment_of_python() -> dict[str, str]:
    """Return the variables in which programs installed beside this Python, such as DVC, are found first."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run_copy(folder: Path, changes: dict[str, Any], environment: Mapping[str, str] = os.environ) -> int:
    """Run the pipeline in a copy of the project in ``folder``, with changed settings; return DVC's exit code."""
    copy_project(folder)
    change_params(folder / "params.yaml", changes)
    environment = {**environment, "PATH": environment_of_python()["PATH"], "PYTHONPATH": str(folder / "src")}
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return subprocess.run(["dvc", "repro"], cwd=folder, env=environment, check=False).returncode


def main() -> int:
    """Run the pipeline in a small copy, print its summary and the seconds it took; return DVC's exit code."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seqlm-smoke-") as base:
        folder = Path(base) / "project"
        code = run_copy(folder, SMALL)
        if code == 0:
            print((folder / "reports" / "summary.txt").read_text(encoding="utf-8"))
            print(f"The whole pipeline ran in {time.monotonic() - begin:.0f} s.")
    return code


if __name__ == "__main__":
    sys.exit(main())
