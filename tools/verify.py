"""Run the pipeline from scratch, without the run cache, and compare every hash with dvc.lock.

`make verify` does it with the settings of params.yaml. `python tools/verify.py --small` runs small settings, twice,
and compares the two runs; with `--imitate`, the runs after the first imitate a processor of another maker and one
that has only AVX2. Each run has a copy of the project and a DVC cache of its own, in a temporary folder. The first
stage of dvc.yaml that differs is named.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from imitate import THIS, environments, obstacle, processor
from smoke import ROOT, SMALL, run_copy

Stages = dict[str, Any]
"""The entries of a dvc.lock."""


def differences(expected: Stages, found: Stages) -> dict[str, list[str]]:
    """Return the outputs that differ by stage, in the order of dvc.yaml."""
    differing, order = {}, list(YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"])
    for name in sorted(expected | found, key=lambda name: order.index(name.partition("@")[0])):
        hashes = [
            {out["path"]: out["md5"] for out in stages.get(name, {}).get("outs", [])} for stages in (expected, found)
        ]
        paths = [path for path in sorted(hashes[0] | hashes[1]) if hashes[0].get(path) != hashes[1].get(path)]
        if paths:
            differing[name] = paths
    return differing


def read_lock(folder: Path) -> Stages:
    """Return the entries of a folder's dvc.lock."""
    stages: Stages = YAML(typ="safe").load(folder / "dvc.lock")["stages"]
    return stages


def run_from_scratch(folder: Path, environment: Mapping[str, str], *, small: bool) -> Stages:
    """Run the whole pipeline in a fresh copy in ``folder`` and return the entries of its dvc.lock."""
    # The sample instead of a corpus that cannot be reached would change everything.
    if code := run_copy(folder, SMALL if small else {"download.fallback": None}, environment):
        sys.exit(code)
    return read_lock(folder)


def report(name: str, differing: dict[str, list[str]], found: Stages) -> None:
    """Print which outputs of a run differ, and the first stage among theirs."""
    num_outputs, num_differing = sum(len(stage["outs"]) for stage in found.values()), sum(map(len, differing.values()))
    print(f"{name}: {num_outputs - num_differing} of {num_outputs} outputs are equal", flush=True)
    if differing:
        print(f"{name}: the first stage that differs is {next(iter(differing))}")
    for stage, paths in differing.items():
        print(f"{name}: {stage}: {', '.join(paths)}")


def main() -> int:
    """Run, compare, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the sample corpus with small settings")
    parser.add_argument("--imitate", action="store_true", help="also run as other processors would")
    options = parser.parse_args()
    if options.imitate and (why := obstacle()):
        parser.error(why)
    print(f"processor: {processor_name()}", flush=True)
    expected, differs = None if options.small else read_lock(ROOT), False
    with tempfile.TemporaryDirectory() as base:
        runs: Mapping[str, Mapping[str, str]] = {THIS: os.environ}
        if options.imitate:
            runs = environments(Path(base))
        elif options.small:
            runs = {"first run": os.environ, "second run": os.environ}
        for number, (name, environment) in enumerate(runs.items()):
            found = run_from_scratch(Path(base, f"run-{number}"), environment, small=options.small)
            expected = expected or found
            differing = differences(expected, found)
            report(name, differing, found)
            differs = differs or bool(differing)
    return 1 if differs else 0


def processor_name() -> str:
    """Return the name of this processor."""
    try:
        return processor()["model name"]
    except (OSError, KeyError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
