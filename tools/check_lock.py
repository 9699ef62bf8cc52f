"""Check that dvc.lock is fresh: `dvc repro` would run only `download`, which always runs.

This needs no data: DVC is asked in a copy without data, where it takes the outputs to be those that the lock file
names. `--prune` removes the stages that no longer exist, such as those of a renamed run.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dvc.utils.serialize import modify_yaml
from ruamel.yaml import YAML

from smoke import copy_project, environment_of_python

LOCK = Path("dvc.lock")


def dvc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run DVC in a folder."""
    return subprocess.run(
        ["dvc", *arguments], cwd=folder, env=environment_of_python(), capture_output=True, text=True, check=False
    )


def locked_stages() -> dict[str, Any]:
    """Return the entry of each stage in dvc.lock."""
    found: dict[str, Any] = YAML(typ="safe").load(LOCK).get("stages", {}) if LOCK.exists() else {}
    return found


def changed_stages(copy: Path) -> tuple[set[str], str]:
    """Return the stages that have changed since they ran, and DVC's message if it cannot tell."""
    result = dvc(copy, "repro", "--dry", "--allow-missing", "--keep-going")
    # Without data, DVC fails where a stage would have to run.
    found = re.findall(r"^Running stage '([^']+)'", result.stdout, flags=re.MULTILINE)
    found += re.findall(r"failed to reproduce '([^']+)'", result.stderr)
    changed = set(found) - {"download"}
    return changed, result.stderr.strip() if result.returncode and not changed else ""


def stale_stages() -> set[str]:
    """Return the stages of dvc.lock that no longer exist."""
    listed = dvc(Path(), "stage", "list", "--all", "--name-only", "--fail")
    return set(locked_stages()) - set(listed.stdout.split()) if listed.returncode == 0 else set()


def missing_outputs() -> list[str]:
    """Return the outputs that are missing."""
    outputs = [output["path"] for stage in locked_stages().values() for output in stage.get("outs", [])]
    return [path for path in outputs if not Path(path).exists()]


def prune() -> int:
    """Remove the stages from dvc.lock that no longer exist; return the exit code."""
    if stale := stale_stages():
        with modify_yaml(LOCK) as lock:
            for name in sorted(stale):
                del lock["stages"][name]
                print(f"dvc.lock: removed stage '{name}', which no longer exists")
    return 0


def check() -> int:
    """Print what is stale; return 0 if dvc.lock is fresh and 1 if not."""
    Path(".dvc/tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=".dvc/tmp", prefix="check-lock-") as base:
        copy_project(Path(base), Path(), without=())
        Path(base, ".dvc", "config.local").write_text("[core]\n    no_scm = true\n")
        changed, failure = changed_stages(Path(base))
    stale = stale_stages()
    for name in sorted(changed):
        print(f"dvc.lock: stage '{name}' has changed since it ran")
    for name in sorted(stale):
        print(f"dvc.lock: stage '{name}' no longer exists")
    if changed or failure:
        print(f"{failure}\ndvc.lock is not fresh: run `dvc repro`, then commit dvc.lock and reports/".lstrip())
    elif stale:
        print("dvc.lock is not fresh: run `python tools/check_lock.py --prune`, then commit it")
    elif missing := missing_outputs():
        print(f"not pulled: {', '.join(missing)}: `dvc pull` gets them, `dvc repro` computes them", file=sys.stderr)
    return 1 if changed or stale or failure else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prune", action="store_true", help="remove stages from dvc.lock that no longer exist")
    sys.exit(prune() if parser.parse_args().prune else check())
