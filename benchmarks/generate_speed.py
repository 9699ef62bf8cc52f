"""Generation speed: the chapter's loop against this project's, in turn, in one run.

The reference follows section 8.5 of the book in our own words: one prefix, one-hot input, the framework's bookkeeping
for gradients left on, and the likeliest token taken back to Python after every step. The contenders take turns, so
that a busy machine slows all of them down; medians and ratios are what counts. Both write greedily from the same
weights, and the texts must be equal.

    python benchmarks/generate_speed.py [--device cuda] [--rounds 7] > benchmarks/results/generate_speed.txt
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from origin import origin
from torch.nn import functional as F

from seqlm.core.devices import resolve_device
from seqlm.networks.building import build_network
from seqlm.networks.network import Network, continue_prefixes
from seqlm.pipeline.gradients.study import network_settings

VOCAB_SIZE, NUM_HIDDENS, NUM_PREFIXES = 28, 512, 256
PREFIX = [3, 9, 13, 5, 1, 3, 12, 4, 11, 2, 5, 8, 8, 5, 12]


def random_model(device: torch.device) -> Network:
    """Return a model whose greedy choices are clear, and that writes no ``<unk>`` in either loop."""
    model = build_network(network_settings("scratch", "tanh", NUM_HIDDENS, len(PREFIX)), VOCAB_SIZE, 0, device)
    weights = {name: 4 * weight for name, weight in model.weight_copies().items()}
    weights["b_q"][0] = -100
    model.load_weights(weights)
    return model


def chapter_loop(model: Network, prefix: list[int], num_preds: int) -> list[int]:
    """Continue one prefix as the chapter does."""
    w_xh, w_hh, b_h, w_hq, b_q = [
        torch.from_numpy(weight).requires_grad_() for weight in model.weight_copies().values()
    ]
    device = w_xh.device
    state = torch.zeros(1, NUM_HIDDENS, device=device)
    outputs = [prefix[0]]

    def step(token: int, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        steps = F.one_hot(torch.tensor([token], device=device).reshape(1, 1).T, VOCAB_SIZE).float()
        predicted = []
        for one_hot in steps:
            hidden = torch.tanh(torch.mm(one_hot, w_xh) + torch.mm(hidden, w_hh) + b_h)
            predicted.append(torch.mm(hidden, w_hq) + b_q)
        return torch.cat(predicted, dim=0), hidden

    for token in prefix[1:]:
        _, state = step(outputs[-1], state)
        outputs.append(token)
    for _ in range(num_preds):
        logits, state = step(outputs[-1], state)
        outputs.append(int(logits.argmax(dim=1).reshape(1)))
    return outputs[len(prefix) :]


def characters_per_second(write: Callable[[], list[list[int]]]) -> tuple[float, list[list[int]]]:
    start = time.perf_counter()
    texts = write()
    return sum(map(len, texts)) / (time.perf_counter() - start), texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--num-preds", type=int, default=500)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model, size = random_model(torch.device(resolve_device(arguments.device))), arguments.num_preds
    writers: dict[str, Callable[[], list[list[int]]]] = {
        "chapter, 1 prefix": lambda: [chapter_loop(model, PREFIX, size)],
        "ours, 1 prefix": lambda: continue_prefixes(model, np.array([PREFIX]), size).tolist(),
        f"ours, {NUM_PREFIXES} prefixes": lambda: continue_prefixes(
            model, np.array([PREFIX] * NUM_PREFIXES), size
        ).tolist(),
    }
    rates: dict[str, list[float]] = {name: [] for name in writers}
    firsts = [characters_per_second(write)[1][0] for write in writers.values()]
    for _ in range(arguments.rounds):
        for name, write in writers.items():
            rates[name].append(characters_per_second(write)[0])
    medians = {name: statistics.median(values) for name, values in rates.items()}
    slowest = medians["chapter, 1 prefix"]
    print(origin())
    print(f"greedy, {NUM_HIDDENS} hidden units, {size} characters a prefix, {arguments.threads} threads")
    for name, median in medians.items():
        print(f"{name:<20} {median:>10,.0f} characters/s {median / slowest:>7.1f} times")
    print("same greedy text:", "yes" if firsts[0] == firsts[1] == firsts[2] else "NO")


if __name__ == "__main__":
    main()
