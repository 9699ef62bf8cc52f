"""Give an LSTM and a transformer the same small search of settings, with the same compute time.

    python benchmarks/transformer_search.py [--seconds N] [--final-seconds N] [--seeds N]

``SEQLM_DATA_DIR`` names a folder with The Time Machine, which is prepared as in the pipeline. Everything runs with one
thread, and seconds are those of the processor. All rows are in benchmarks/results/transformer_search.csv:

1. ``stage`` search: 12 settings of each kind, one seed. The first is what the pipeline had before the search: the run
   ``lstm`` of params.yaml, and the preset ``transformer``. The others are drawn from :data:`GRID`. How many tokens
   each trains on in a second is measured first, for all in turn, several times; the best rate counts. Then each is
   trained on as many tokens as it needs ``--seconds`` for, and scored on val.
2. ``stage`` seeds: the setting of each kind that is best on val, and the first one, from several seeds, each for
   ``--final-seconds``, scored on val and test.
3. ``stage`` longer: the transformer's best setting, one seed, for as long as its first one needs for the tokens of
   curves.py. So the row can be compared with that of the first setting in curves_data.csv.

A row without ``val_bits`` is planned but not trained yet. The file is written after each training run, and rows that it
already holds are kept, so an interrupted search continues.
"""

import argparse
import random
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from curves import CORPORA, MAX_TOKENS, ROOT, Corpus, Stopwatch, prepare
from origin import machine

from seqlm.core.files import read_csv, write_csv
from seqlm.core.layout import Layout
from seqlm.models.scored_text import measure
from seqlm.networks.network import stream_nll
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer

RESULTS = Layout(ROOT).benchmark("transformer_search.csv")
COMMON = {
    "token": "char", "embedding": "learned", "max_tokens": None, "optimizer": "adamw",
    "schedule": "cosine", "warmup_share": 0.1, "weight_decay": 0.01, "num_epochs": 60, "eval_every": 12,
    "eval_tokens": 100_000, "checkpoint": "best", "sample_every": 0,
}  # fmt: skip
"""Settings of every training run. The budget ends it before 60 epochs; then it has five evaluations on val."""
SEARCHED = ("lr", "num_layers", "num_hiddens", "dropout", "num_steps", "tie_weights")
FIRST = {"lstm": (0.006, 2, 256, 0.25, 32, False), "transformer": (0.004, 3, 128, 0.1, 64, False)}
"""The settings that the pipeline had before the search."""
GRID: dict[str, tuple[tuple[Any, ...], ...]] = {
    "lstm": ((0.003, 0.006, 0.012), (1, 2, 3), (128, 192, 256, 384), (0.0, 0.1, 0.25), (16, 32, 64), (False, True)),
    "transformer": (
        (0.002, 0.004, 0.008), (2, 3, 4), (64, 96, 128, 192), (0.0, 0.1, 0.25), (32, 64, 128), (False, True)
    ),
}  # fmt: skip
"""Values of the searched settings."""
NUM_SETTINGS = 12
TOKENS_PER_BATCH = {"lstm": 1024, "transformer": 512}
HEAD_SIZE = 32
ROUNDS, SECONDS_OF_ROUND = 4, 0.7
"""Each setting's rate is measured so many times, for so long."""
KEYS = ["stage", "model", "setting", "seed"]


def planned(model: str) -> list[dict[str, Any]]:
    """Return the searched settings of a kind: the first, and others drawn from the grid, all different."""
    draws, chosen = random.Random(0), [FIRST[model]]
    while len(chosen) < NUM_SETTINGS:
        values = tuple(draws.choice(choices) for choices in GRID[model])
        chosen += [] if values in chosen else [values]
    return [dict(zip(SEARCHED, values, strict=True)) for values in chosen]


def run_settings(model: str, searched: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a run; the tokens of a minibatch are the same for all settings of a kind."""
    own: dict[str, Any] = {"sampling": "sequential", "embedding_size": None if searched["tie_weights"] else 64}
    if model == "transformer":
        own = {"sampling": "random", "num_heads": searched["num_hiddens"] // HEAD_SIZE}
    return {"model": model, "batch_size": TOKENS_PER_BATCH[model] // searched["num_steps"]} | COMMON | own | searched


def build(corpus: Corpus, row: dict[str, Any], token_budget: int | None) -> Trainer:
    """Return the trainer of a row of the results."""
    run = run_settings(row["model"], {name: row[name] for name in SEARCHED}) | {"token_budget": token_budget}
    values = corpus.params | {"device": "cpu", "num_threads": 1, "seed": int(row["seed"]), "runs": {row["model"]: run}}
    config: RunConfig = resolve_runs(values, source="params.yaml")[row["model"]]
    return Trainer(config, len(corpus.vocab), corpus.train, corpus.val, "cpu")


class _EnoughError(Exception):
    """Ends a measurement."""


def measure_rates(corpus: Corpus, rows: list[dict[str, Any]]) -> list[float]:
    """Return the tokens per second of each row's training: the best of several short measurements, taken in turn."""
    trainers, best = [build(corpus, row, None) for row in rows], [0.0] * len(rows)
    for _ in range(ROUNDS):
        for index, trainer in enumerate(trainers):
            watch, ends = Stopwatch(), time.process_time() + SECONDS_OF_ROUND

            def stop(trainer: Trainer, watch: Stopwatch = watch, ends: float = ends) -> None:
                watch(trainer)
                if time.process_time() > ends and len(watch.seconds) > 3:
                    raise _EnoughError

            try:
                trainer.train(stop)
            except _EnoughError:
                seconds = pd.Series(watch.seconds).median()
                best[index] = max(best[index], trainer.plan.tokens_per_batch / seconds)
    return best


def plan_search(corpus: Corpus, seconds: float) -> None:
    """Write the rows of the search, with their rates and numbers of tokens."""
    rows: list[dict[str, Any]] = []
    for model in FIRST:
        for number, searched in enumerate(planned(model), 1):
            rows.append(
                {"stage": "search", "model": model, "setting": number, "seed": 0, "seconds": seconds} | searched
            )
    for row, rate in zip(rows, measure_rates(corpus, rows), strict=True):
        row |= {"tokens_per_second": round(rate), "token_budget": round(rate * seconds)}
    add(rows)


def plan_final(stage: str, num_seeds: int, seconds: float | None = None) -> None:
    """Write the rows of a stage: of the best setting of each kind on val, and of the first one.

    Without ``seconds``, only of the transformer's best setting, which then trains for as long as the first one needs
    for the tokens of curves.py.
    """
    table = read_csv(RESULTS)
    search, there = table[table["stage"] == "search"], set(table[table["stage"] == stage]["model"])
    if seconds is None:
        search = search[search["model"] == "transformer"]
    for model, rows in search[~search["model"].isin(there)].groupby("model"):
        first, best = rows[rows["setting"] == 1], rows.loc[[rows["val_bits"].idxmin()]]
        duration = round(MAX_TOKENS / first["tokens_per_second"].item(), 1) if seconds is None else seconds
        chosen = best if seconds is None else pd.concat([best, first]).drop_duplicates()
        for row in chosen[["setting", *SEARCHED, "tokens_per_second"]].to_dict("records"):
            new = {"stage": stage, "model": model, "seconds": duration} | row
            new |= {"token_budget": round(row["tokens_per_second"] * duration)}
            add([new | {"seed": seed} for seed in range(num_seeds)])


def train_planned(corpus: Corpus, stage: str) -> None:
    """Train and score the rows of a stage that have no result yet."""
    table = read_csv(RESULTS)
    for row in table[(table["stage"] == stage) & table["val_bits"].isna()].to_dict("records"):
        add([row | train(corpus, row)])


def train(corpus: Corpus, row: dict[str, Any]) -> dict[str, Any]:
    """Train and score one row; return what its row says about it."""
    trainer, started = build(corpus, row, int(row["token_budget"])), time.process_time()
    trainer.train(lambda _: None)
    took = time.process_time() - started
    epoch, weights = trainer.chosen_weights()
    trainer.network.load_weights(weights)
    bits = {}
    for split in ("val", "test") if row["stage"] != "search" else ("val",):  # val chooses, before test is looked at
        stream = corpus.streams[split]
        found = measure(stream.scored_nll(partial(stream_nll, trainer.network)), stream)
        bits[f"{split}_bits"] = round(found["bits_per_character"], 4)
    return {
        "parameters": trainer.network.num_parameters,
        "epochs": round(trainer.progress.epoch, 2),
        "kept_epoch": round(epoch, 2),
        **bits,
        "processor_seconds": round(took, 1),
        "machine": machine(),
    }


COLUMNS = [
    *KEYS, *SEARCHED, "tokens_per_second", "seconds", "token_budget", "parameters", "epochs", "kept_epoch", "val_bits",
    "test_bits", "processor_seconds", "machine",
]  # fmt: skip


def add(rows: list[dict[str, Any]]) -> None:
    """Print rows and write them to the results, in place of those with the same keys."""
    table = pd.DataFrame(rows, columns=COLUMNS)
    print(table.drop(columns="machine").to_string(index=False, header=False), flush=True)
    if RESULTS.exists():
        table = pd.concat([read_csv(RESULTS), table])
    table = table.drop_duplicates(KEYS, keep="last").sort_values(KEYS)
    whole = ["parameters", "tokens_per_second", "token_budget"]
    write_csv(RESULTS, table.astype(dict.fromkeys(whole, "Int64")))


def search(corpus: Corpus, seconds: float, final_seconds: float, num_seeds: int) -> None:
    """Do all that is missing in the results."""
    if not RESULTS.exists():
        plan_search(corpus, seconds)
    train_planned(corpus, "search")
    for stage, seeds, duration in (("seeds", num_seeds, final_seconds), ("longer", 1, None)):
        plan_final(stage, seeds, duration)
        train_planned(corpus, stage)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of each training run of the search")
    parser.add_argument("--final-seconds", type=float, default=40, help="of each of the final training runs")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(CORPORA["time_machine"], Path(folder))
        search(corpus, options.seconds, options.final_seconds, options.seeds)


if __name__ == "__main__":
    main()
