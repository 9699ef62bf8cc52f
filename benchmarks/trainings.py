"""Train the book's four runs with several seeds, wrong versions of them, and the networks of the exercises.

    python benchmarks/trainings.py book|wrong|exercises [--seeds N] [--epochs N] [--names NAME ...]

Every training but one is on the first 10,000 characters of The Time Machine, with one thread, and adds a row to
benchmarks/results/trainings.csv. Training runs that the file already has are skipped, so an interrupted series
continues.
``SEQLM_DATA_DIR`` names a folder with timemachine.txt.

- book: the bounds on training perplexities in src/seqlm/pipeline/report/book.yaml come from these
  (benchmarks/bounds.py). The rows of concise-sequential are from the engine ``framework``.
- wrong: a network that is given the character it must predict. It must fall below the lower bounds.
- exercises: the answers to exercises 8.5-2, 8.5-4 to 8.5-6 and 8.6-2, and 256 hidden units in
  docs/guide/8-6-rnn-concise.md. The last one has the settings of the run lstm.
"""

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from origin import ROOT

from seqlm.core.settings import read_params
from seqlm.pipeline.preprocess.splitting import clean_and_split
from seqlm.vocab.corpus import SPLITS, build_corpus

RESULTS = ROOT / "benchmarks" / "results" / "trainings.csv"
COLUMNS = (
    "group", "name", "seed", "epochs", "train_perplexity", "best_val_perplexity", "best_epoch", "last_val_perplexity",
    "processor_seconds",
)  # fmt: skip
BOOK: dict[str, dict[str, Any]] = {
    "scratch-sequential": {},
    "scratch-random": {"sampling": "random"},
    "concise-sequential": {"model": "rnn", "num_hiddens": 256},
    "concise-random": {"model": "rnn", "num_hiddens": 256, "sampling": "random"},
}
SMALL = {"num_hiddens": 256}
LSTM = read_params(ROOT / "params.yaml")["runs"]["lstm"]
EXERCISES: dict[str, tuple[int, dict[str, Any]]] = {
    # name: number of seeds, settings
    "as in the book": (2, {}),
    "no clipping": (4, {"grad_clip": None}),
    "relu, no clipping": (4, {"activation": "relu", "grad_clip": None}),
    "state not detached": (1, {"truncation": "full"}),
    "relu": (1, {"activation": "relu"}),
    "256 hidden units": (1, SMALL),
    "half the learning rate": (1, {"lr": 0.5}),
    "16 steps, 256 hidden units": (1, SMALL | {"num_steps": 16}),
    "70 steps, 256 hidden units": (1, SMALL | {"num_steps": 70}),
    "framework's layer, 256 hidden units": (1, SMALL | {"model": "rnn"}),
    "two layers, 256 hidden units": (1, SMALL | {"model": "rnn", "num_layers": 2}),
    "learned embedding, 256 hidden units": (1, SMALL | {"model": "rnn", "embedding": "learned"}),
    "two layers, settings of the run lstm": (1, LSTM | {"model": "rnn"}),
}


def prepare(folder: Path) -> None:
    """Clean the book and encode its splits."""
    data = os.environ.get("SEQLM_DATA_DIR")
    book = Path(data or ".") / "timemachine.txt"
    if not book.exists():
        sys.exit("SEQLM_DATA_DIR must name a folder with timemachine.txt")
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    clean_and_split(book, book.name, folder / "text", "letters", fractions)
    for kind in ("char", "word"):
        build_corpus({name: folder / f"text/{name}.txt" for name in SPLITS}, folder / kind, kind, "")


def trainings(group: str, num_seeds: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield name, seed and settings of every training of a group."""
    if group == "exercises":
        for name, (own_seeds, settings) in EXERCISES.items():
            for seed in range(own_seeds):
                yield name, seed, settings
    else:
        for seed in range(num_seeds):
            for name, settings in BOOK.items():
                yield name, seed, settings


def train(folder: Path, settings: dict[str, Any], seed: int, epochs: int | None) -> dict[str, Any]:
    """Train one network; return what its row says about it."""
    import torch

    from seqlm.core.errors import DivergenceError
    from seqlm.pipeline.configure.settings import resolve_runs
    from seqlm.train.trainer import Trainer
    from seqlm.vocab.corpus import load_split
    from seqlm.vocab.vocabulary import Vocab

    values = read_params(ROOT / "params.yaml") | {"seed": seed, "num_threads": 1, "device": "cpu"}
    changes = {} if epochs is None else {"num_epochs": epochs}
    run = {"token": "char", "sample_every": 0} | settings | changes
    config = resolve_runs(values | {"runs": {"run": run}}, source="params.yaml")["run"]
    torch.set_num_threads(1)
    vocab = Vocab.load(folder / "char" / "vocab.json", "char")
    train_ids, val_ids = (load_split(folder / "char", split) for split in ("train", "val"))
    trainer = Trainer(config, len(vocab), train_ids, val_ids, "cpu")
    started, diverged = time.process_time(), False
    try:
        trainer.train(lambda _: None)
    except DivergenceError:
        diverged = True
    seconds, progress = time.process_time() - started, trainer.progress
    last_val = [row.val_perplexity for row in progress.history if row.val_perplexity is not None]
    return {
        "epochs": progress.num_epochs,
        "train_perplexity": "inf" if diverged else f"{progress.history[-1].train_perplexity:.5g}",
        "best_val_perplexity": f"{progress.best_val_perplexity:.4g}",
        "best_epoch": progress.best_epoch,
        "last_val_perplexity": "inf" if diverged else f"{last_val[-1]:.4g}",
        "processor_seconds": f"{seconds:.0f}",
    }


def show_targets() -> None:
    """Make the samplers give the network, as its input, the very characters it must predict."""
    from seqlm.train import trainer

    cut = vars(trainer)["minibatches"]

    def cheating(*args: Any, **options: Any) -> Iterator[Any]:
        return ((targets, targets) for _, targets in cut(*args, **options))

    vars(trainer)["minibatches"] = cheating


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", choices=["book", "wrong", "exercises"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="instead of the run's own")
    parser.add_argument("--names", nargs="*", help="only these training runs")
    options = parser.parse_args()
    if options.group == "wrong":
        show_targets()
    known = set()
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            known = {(row["group"], row["name"], row["seed"]) for row in csv.DictReader(file)}
    else:
        RESULTS.write_text(",".join(COLUMNS) + "\n")
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for run, seed, settings in trainings(options.group, options.seeds):
            if (options.group, run, str(seed)) in known or run not in (options.names or [run]):
                continue
            row = {"group": options.group, "name": run, "seed": seed}
            row |= train(Path(name), settings, seed, options.epochs)
            with RESULTS.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
            print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
