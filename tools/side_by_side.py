"""Run the stages that `dvc repro` would run, two side by side, before it: `python tools/side_by_side.py`.

DVC runs one stage after another, and stages use two threads at less than twice the speed of one. So each run is trained
and scored by a DVC of its own, with half of the threads for training, which does not change its weights; n-grams, the
sine and the gradients likewise. What this script leaves undone, `dvc repro` does.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seqlm.core.settings import read_params

WORKERS = 2
# As torchrun says that the processes of one machine share the threads.
HALF_THE_THREADS = {"LOCAL_WORLD_SIZE": str(WORKERS)}
CHAINS = (("train", "score"), ("ngrams", "score-ngrams"), ("gradients",), ("sine",))
"""Stages that depend on each other, for one run or kind of token. Chains do not depend on each other."""


def changed_chains() -> list[list[str]]:
    """Return the chains in which a stage has changed, as names of stages with their run or kind."""
    names = [stage for chain in CHAINS for stage in chain]
    status = subprocess.run(["dvc", "status", "--json", *names], check=False, stdout=subprocess.PIPE)
    changed = [name.split("@") for name in json.loads(status.stdout or "{}")]
    chains = []
    for chain in CHAINS:
        for item in sorted({tuple(item) for stage, *item in changed if stage in chain}):
            chains.append(["@".join((stage, *item)) for stage in chain])
    return chains


def run_side_by_side(chains: list[list[str]]) -> int:
    """Return 0, or the exit code of the first chain that failed: no other is started after it."""
    failed: list[int] = []

    def run(chain: list[str]) -> None:
        if failed:
            return
        command = ["dvc", "repro", "--single-item", *chain]
        process = subprocess.Popen(command, env=os.environ | HALF_THE_THREADS, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        for line in process.stdout:
            print(f"{chain[0].partition('@')[2] or chain[0]}: {line}", end="", flush=True)
        if code := process.wait():
            failed.append(code)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(run, chains))
    return failed[0] if failed else 0


def main() -> int:
    """Return an exit code."""
    # Meanwhile, `make repro` compiles the loops of networks.
    if code := subprocess.run(["dvc", "repro", "vocab"], check=False).returncode:
        return code
    params = read_params(Path("params.yaml"))
    # A GPU, or several processes that torchrun starts, train one run at a time.
    if params["device"] == "cpu" and params["launcher"] == "python" and (os.cpu_count() or 1) >= WORKERS:
        chains = changed_chains()
        if len(chains) >= WORKERS:  # one alone has all threads in `dvc repro`
            return run_side_by_side(chains)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the stages have saved their checkpoints
        sys.exit(130)
