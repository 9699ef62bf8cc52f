"""Train the runs that `dvc repro` would train, two side by side, before it: `python tools/train_ahead.py`.

DVC runs one stage after another, and networks train with two threads at less than twice the speed of one. So each run
is trained by a DVC of its own, with half of its threads, which does not change its weights. What this script leaves
undone, for example because a run diverged or DVC's lock was taken, `dvc repro` does, and reports.
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


def train(run: str) -> None:
    """Train a run; print its lines after its name."""
    command = ["dvc", "repro", "--single-item", f"train@{run}"]
    process = subprocess.Popen(command, env=os.environ | HALF_THE_THREADS, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for line in process.stdout:
        print(f"{run}: {line}", end="", flush=True)
    process.wait()


def main() -> int:
    """Return the exit code of the stages before training."""
    # Meanwhile, `make repro` compiles the loops of networks.
    code = subprocess.run(["dvc", "repro", "vocab", "ngrams", "sine"], check=False).returncode
    if code:
        return code
    params = read_params(Path("params.yaml"))
    # A GPU, or several processes that torchrun starts, train one run at a time.
    if params["device"] == "cpu" and params["launcher"] == "python" and (os.cpu_count() or 1) >= WORKERS:
        status = subprocess.run(["dvc", "status", "--json", "train"], check=False, stdout=subprocess.PIPE)
        changed = [stage.partition("@")[2] for stage in json.loads(status.stdout or "{}")]
        if len(changed) >= WORKERS:
            with ThreadPoolExecutor(WORKERS) as pool:
                list(pool.map(train, sorted(changed)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the stages have saved their checkpoints
        sys.exit(130)
