"""How far the final perplexity of a run moves with the seed, and with what should not matter.

    python benchmarks/spread.py RUN [--engine framework] [--epochs N] [--seeds N]

Trains one run of params.yaml on the book, once for each seed, then with the first seed
for another number of threads and for other instruction sets, each in a process of its
own. Prints every final perplexity and how far apart they are.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIANTS: dict[str, tuple[int, dict[str, str]]] = {
    "1 thread": (1, {}),
    "1 thread again": (1, {}),
    "2 threads": (2, {}),
    "ATEN_CPU_CAPABILITY=default": (1, {"ATEN_CPU_CAPABILITY": "default"}),
    "ATEN_CPU_CAPABILITY=avx2": (1, {"ATEN_CPU_CAPABILITY": "avx2"}),
    "ATEN_CPU_CAPABILITY=avx512": (1, {"ATEN_CPU_CAPABILITY": "avx512"}),
    "MKL_CBWR=COMPATIBLE": (1, {"MKL_CBWR": "COMPATIBLE"}),
    "NUMBA_CPU_NAME=haswell": (1, {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}),
}


def prepare(folder: Path) -> None:
    from seqlm.preprocess.preparing import clean_and_split
    from seqlm.vocab.corpus import SPLITS, build_corpus

    data = os.environ.get("SEQLM_DATA_DIR")
    book = Path(data or ".") / "timemachine.txt"
    if not book.exists():
        sys.exit("SEQLM_DATA_DIR must name a folder with timemachine.txt")
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    clean_and_split(book, book.name, folder / "text", "letters", fractions)
    for kind in ("char", "word"):
        build_corpus({name: folder / f"text/{name}.txt" for name in SPLITS}, folder / kind, kind, "")


def train_one(folder: Path, seed: int, threads: int, options: argparse.Namespace) -> None:
    """Train one run and print its perplexities after the first and after the last epoch."""
    import torch

    from seqlm.configure.settings import resolve_runs
    from seqlm.core.settings import read_params
    from seqlm.train.trainer import Trainer
    from seqlm.vocab.corpus import load_split
    from seqlm.vocab.vocabulary import Vocab

    values = read_params(ROOT / "params.yaml") | {"seed": seed, "num_threads": threads, "device": "cpu"}
    run, epochs, changes = options.run, options.epochs, {"engine": options.engine}
    if epochs is not None:
        changes |= {"num_epochs": epochs, "eval_every": epochs, "checkpoint": "last"}
    config = resolve_runs(values | {"runs": {run: values["runs"][run] | changes}}, source="params.yaml")[run]
    torch.set_num_threads(threads)
    kind = folder / config.token
    ids = [load_split(kind, split) for split in ("train", "val")]
    trainer = Trainer(config, len(Vocab.load(kind / "vocab.json")), *ids, torch.device("cpu"))
    trainer.train(lambda _: None)
    first, last = trainer.progress.history[0], trainer.progress.history[-1]
    values = {"epochs": last.epoch, "first": first.train_perplexity, "train": last.train_perplexity}
    print(json.dumps(values | {"val": last.val_perplexity}))


def child(folder: Path, seed: int, threads: int, options: argparse.Namespace, **changes: str) -> dict[str, float]:
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"} | changes
    command = [sys.executable, __file__, options.run, "--one", str(folder), str(seed), str(threads)]
    command += ["--engine", options.engine]
    command += [] if options.epochs is None else ["--epochs", str(options.epochs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(name: str, found: dict[str, float]) -> str:
    return f"{name:38}{found['first']:14.6f}{found['train']:14.6f}{found['val']:14.6f}"


def spread(rows: list[dict[str, float]], key: str) -> str:
    """Return least and greatest, and the largest distance from the geometric mean, in per cent."""
    logs = [math.log(row[key]) for row in rows]
    mean = sum(logs) / len(logs)
    largest = max(abs(value - mean) for value in logs)
    return f"{math.exp(min(logs)):.4f} to {math.exp(max(logs)):.4f}, within {math.expm1(largest):.2%} of their mean"


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--epochs", type=int, help="in place of the run's own")
    parser.add_argument("--engine", choices=["auto", "framework"], default="auto")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        folder, seed, threads = options.one
        train_one(Path(folder), int(seed), int(threads), options)
        return
    command = " ".join(["python benchmarks/spread.py", *sys.argv[1:]])
    capability = torch.backends.cpu.get_cpu_capability()
    print(f"{command}\nPyTorch {torch.__version__}, {platform.machine()}, {capability}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        print(f"\n{'perplexity':38}{'epoch 1':>14}{'last, train':>14}{'last, val':>14}", flush=True)
        seeds = []
        for seed in range(options.seeds):
            seeds.append(child(folder, seed, 1, options))
            print(line(f"seed {seed}, 1 thread", seeds[-1]), flush=True)
        variants = []
        for variant, (threads, changes) in VARIANTS.items():
            variants.append(child(folder, 0, threads, options, **changes))
            print(line(f"seed 0, {variant}", variants[-1]), flush=True)
    print(f"\nafter {seeds[0]['epochs']} epochs")
    for name, rows in ((f"{len(seeds)} seeds", seeds), ("one seed, all variants", variants)):
        for key in ("first", "train", "val"):
            print(f"{name}, {key}: {spread(rows, key)}")


if __name__ == "__main__":
    main()
