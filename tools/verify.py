"""Run the pipeline twice from scratch, without the run cache, and compare every hash.

`make verify` uses the settings of params.yaml; `python tools/verify.py --small` small ones, in
a few minutes. Each run has its own copy of the project and DVC cache, in a temporary folder.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from smoke import SMALL, run_copy


def hashes(lock: dict[str, Any]) -> dict[str, str]:
    """Return the hash of each output of each stage of a ``dvc.lock``."""
    return {f"{stage}: {out['path']}": out["md5"] for stage, locked in lock.items() for out in locked["outs"]}


def differences(first: dict[str, str], second: dict[str, str]) -> Iterator[str]:
    """Yield the outputs whose hashes differ, or that only one run has."""
    for name in sorted(first | second):
        if first.get(name) != second.get(name):
            yield f"{name}: {first.get(name, 'missing')} and {second.get(name, 'missing')}"


def run_from_scratch(folder: Path, *, small: bool) -> dict[str, str]:
    """Run the whole pipeline in a fresh copy in ``folder`` and return its hashes."""
    if code := run_copy(folder, SMALL if small else {}):
        sys.exit(code)
    return hashes(YAML(typ="safe").load(folder / "dvc.lock")["stages"])


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
