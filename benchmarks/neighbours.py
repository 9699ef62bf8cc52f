"""Training beside other work on the same cores: tokens per second alone and with one busy process per core.

Every kind of network is trained for some seconds in a process of its own, with as many threads as there are cores:
alone, and beside one process per core that does nothing but compute. Each of these is done with three ways to wait:
that of the library, with fewer spins, and with no spins. They take turns. A training that shares each core with
one other process can at best be half as fast as alone; ``slower`` compares it with one alone that waits as the library
does.

    python benchmarks/neighbours.py [--rounds 5] [--seconds 5] [--threads 2] [--busy 1] [--network lstm]

Run it on an otherwise idle machine. It first says how long it will take, and then names each round as it starts.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from busy import busy_processes  # noqa: E402 (the tools are no package)

NETWORKS = {
    # From params.yaml: the book's, and the one that is meant to generalise.
    "scratch": {"model": "scratch", "num_hiddens": 512},
    "rnn": {"model": "rnn", "num_hiddens": 256, "engine": "framework"},
    "gru": {"model": "gru", "num_hiddens": 256},
    "lstm": {
        "model": "lstm", "num_hiddens": 256, "num_layers": 2, "embedding": "learned", "embedding_size": 64,
        "dropout": 0.4, "num_steps": 64, "optimizer": "adamw", "lr": 0.007,
    },
}  # fmt: skip
POLICIES = {"library's own": {}, "fewer spins": {"GOMP_SPINCOUNT": "100000"}, "no spins": {"GOMP_SPINCOUNT": "0"}}
PLACES = ("alone", "shared")
NUM_TOKENS, VOCAB_SIZE = 10_000, 28
START_SECONDS = 4  # to start a process and load PyTorch and the compiled code


def measure(network: str, threads: int, seconds: float) -> float:
    """Train a network for some seconds, not counting compilation, and return its tokens per second."""
    import numpy as np
    import torch

    from seqlm.configure.settings import resolve_runs
    from seqlm.core.settings import read_params
    from seqlm.train.trainer import Trainer

    values = read_params(ROOT / "params.yaml") | {"num_threads": threads}
    values |= {"runs": {"x": NETWORKS[network] | {"token": "char", "num_epochs": 10**6, "eval_every": 10**6}}}
    torch.set_num_threads(threads)
    tokens = np.random.default_rng(0).integers(0, VOCAB_SIZE, NUM_TOKENS)
    trainer = Trainer(resolve_runs(values, source="")["x"], VOCAB_SIZE, tokens, tokens[:100], torch.device("cpu"))
    begin: list[float] = []

    class Done(Exception):
        pass

    def watch(now: Trainer) -> None:
        begin[:] = begin or [time.perf_counter(), now.progress.tokens]
        elapsed = time.perf_counter() - begin[0]
        if elapsed >= seconds:
            begin.append((now.progress.tokens - begin[1]) / elapsed)
            raise Done

    with suppress(Done):
        trainer.train(watch)
    return begin[-1]


def in_a_process(network: str, policy: str, threads: int, seconds: float) -> float:
    """Return what :func:`measure` returns, from a process of its own whose threads wait in this way."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "KMP_"))}
    environment |= POLICIES[policy]
    command = [sys.executable, __file__, "--measure", network, "--threads", str(threads), "--seconds", str(seconds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout)


def compare(network: str, threads: int, rounds: int, seconds: float, busy: int) -> None:
    """Print a line for each policy of one network."""
    rates: dict[tuple[str, str], list[float]] = {(policy, place): [] for policy in POLICIES for place in PLACES}
    for number in range(rounds):
        print(f"{network}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for (policy, place), found in rates.items():
            with busy_processes(busy * (os.cpu_count() or 1) if place == "shared" else 0):
                found.append(in_a_process(network, policy, threads, seconds))
    medians = {key: statistics.median(values) for key, values in rates.items()}
    quiet = medians["library's own", "alone"]
    for policy in POLICIES:
        alone, shared = (medians[policy, place] for place in PLACES)
        print(
            f"{network:<10}{threads:>8}  {policy:<14}{alone:>12,.0f}{shared:>12,.0f}{quiet / shared:>10.2f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=NETWORKS, nargs="+", default=list(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--busy", type=int, default=1, help="busy processes per core")
    parser.add_argument("--measure", choices=NETWORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(measure(arguments.measure, arguments.threads, arguments.seconds))
        return
    measurements = len(arguments.network) * arguments.rounds * len(POLICIES) * len(PLACES)
    minutes = measurements * (arguments.seconds + START_SECONDS) / 60
    print(f"{measurements} training runs: about {minutes:.0f} minutes", file=sys.stderr, flush=True)
    processes = f"{arguments.busy} busy process{'es' * (arguments.busy > 1)}"
    print(f"tokens per second, medians; shared: beside {processes} per core")
    print("network    threads  waiting            alone      shared    slower", flush=True)
    for network in arguments.network:
        compare(network, arguments.threads, arguments.rounds, arguments.seconds, arguments.busy)


if __name__ == "__main__":
    main()
