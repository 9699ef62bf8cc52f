"""Runs the pipeline twice from scratch, without the run cache, and compares every hash.

`make verify` does it with the settings of params.yaml; `python tests/verify.py --small`
with small ones, in a minute. Each run has a copy of the project and a DVC cache of its
own, in a temporary folder.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smoke import SMALL
from workspace import Workspace


def hashes(lock: dict[str, Any]) -> dict[str, str]:
    """Return the hash of each output of each stage of a ``dvc.lock``."""
    return {f"{stage}: {out['path']}": out["md5"] for stage, locked in lock.items() for out in locked["outs"]}


def differences(first: dict[str, str], second: dict[str, str]) -> Iterator[str]:
    """Yield the outputs whose hashes differ, or that only one side has."""
    for name in sorted(first | second):
        if first.get(name) != second.get(name):
            yield f"{name}: {first.get(name, 'missing')} and {second.get(name, 'missing')}"


def run_from_scratch(base: Path, *, small: bool) -> dict[str, str]:
    """Run the whole pipeline in a fresh copy below ``base`` and return its hashes."""
    workspace = Workspace(base / "project", base / "traces")
    if not small:
        # As `make repro` would: no limit on threads but the settings', and the data folder is looked at.
        workspace.environment |= {name: os.environ[name] for name in ("SEQLM_DATA_DIR",) if name in os.environ}
        workspace.environment.pop("OMP_NUM_THREADS")
    workspace.begin(SMALL if small else {})
    workspace.run("dvc", "repro", timeout=24 * 3600)
    return hashes(workspace.lock())


def main() -> int:
    """Run twice, compare, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="the sample corpus with small settings")
    small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name in ("first", "second"):
            found.append(run_from_scratch(Path(folder, name), small=small))
            print(f"{name} run: {len(found[-1])} outputs", flush=True)
    unequal = list(differences(*found))
    for line in unequal:
        print(f"differs: {line}")
    print(f"{len(found[0]) - len(unequal)} of {len(found[0])} outputs are equal")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
