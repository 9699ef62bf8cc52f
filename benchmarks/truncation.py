"""Time of truncated backpropagation against its length.

A window of 1024 steps is worked through in pieces of each length, the hidden state is
carried on, and the gradients of the pieces are summed: regular truncation. One piece of
1024 steps is the full gradient. The lengths take turns, so that a busy machine slows
all of them; medians and ratios are what counts.

    python benchmarks/truncation.py [--device cuda] [--rounds 7] > benchmarks/results/truncation.txt
"""

import argparse
import statistics
import time

import numpy as np
import torch
from origin import origin
from torch import Tensor

from seqlm.core.devices import resolve_device
from seqlm.networks.building import build_network
from seqlm.networks.network import Ids, Network
from seqlm.pipeline.gradients.study import network_settings

VOCAB_SIZE, BATCH_SIZE, NUM_STEPS = 28, 32, 1024
LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def gradient_in_pieces(model: Network, window: Ids, length: int) -> list[Tensor]:
    """Return the summed gradients of all pieces; each piece's state is a constant for the next."""
    state, totals = (model.initial_state(len(window)), [torch.zeros(weight.shape) for weight in model.gradients])
    for start in range(0, NUM_STEPS, length):
        piece = window[:, start : start + length + 1]
        _, state = model.compute_gradients(piece[:, :-1], piece[:, 1:], state)
        for total, gradient in zip(totals, model.gradients, strict=True):
            total += torch.as_tensor(gradient) * (length / NUM_STEPS)
    return totals


def seconds(model: Network, window: Ids, length: int, device: torch.device) -> float:
    start = time.perf_counter()
    gradient_in_pieces(model, window, length)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(num_hiddens: int, device: torch.device, rounds: int) -> None:
    settings = network_settings("scratch", "tanh", num_hiddens, NUM_STEPS)
    model = build_network(settings, VOCAB_SIZE, 0, device)
    window = np.random.default_rng(0).integers(0, VOCAB_SIZE, (BATCH_SIZE, NUM_STEPS + 1))
    times: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for length in LENGTHS:
        seconds(model, window, length, device)
    for _ in range(rounds):
        for length in LENGTHS:
            times[length].append(seconds(model, window, length, device))
    full = statistics.median(times[NUM_STEPS])
    for length in LENGTHS:
        median = statistics.median(times[length])
        print(f"{num_hiddens:>6} {length:>6} {1e3 * median:>9,.1f} {median / full:>7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    device = torch.device(resolve_device(arguments.device))
    torch.set_num_threads(1)
    print(origin())
    print(f"{NUM_STEPS} steps, {BATCH_SIZE} batch rows, one thread; medians; ratio to the full gradient")
    print("hidden length        ms   ratio")
    for num_hiddens in (64, 256):
        compare(num_hiddens, device, arguments.rounds)


if __name__ == "__main__":
    main()
