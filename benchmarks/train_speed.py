"""Training speed: the chapter's procedure against this project's models, in turn, in one run.

The reference follows sections 8.5 and 8.6 of the book in our own words: one-hot input, a list of outputs from a loop
over steps, an output layer at every step, gradients by automatic differentiation, clipping parameter by parameter, and
SGD parameter by parameter. The models ``rnn`` and ``scratch`` are trained in compiled loops beside ``nn.RNN``, with the
same optimizer. LSTM and GRU, in the shapes of the run ``lstm`` and of the preset ``tiny_shakespeare``, are trained in
compiled loops, as in a run, and by the framework's layers and optimizer. The contenders take turns, so that a busy
machine slows all of them down; medians and ratios are what counts.

    python benchmarks/train_speed.py [--device cuda] [--rounds 7] [--threads 1 2] [--only rnn gated]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from origin import origin
from torch.nn import functional as F

from seqlm.core.devices import resolve_device
from seqlm.networks.building import build_network
from seqlm.networks.compiled.tiles import BatchRows, add_product, empty_rows, panels_shape
from seqlm.networks.framework import FrameworkRNN
from seqlm.networks.initial import mask
from seqlm.networks.network import Ids, Network
from seqlm.networks.settings import NetworkSettings
from seqlm.pipeline.gradients.study import network_settings
from seqlm.train.minibatches import minibatches

VOCAB_SIZE, BATCH_SIZE, NUM_STEPS, CLIP, LR = 28, 32, 35, 1.0, 1.0
SAMPLERS = ("random", "sequential")
TOKENS = np.random.default_rng(0).integers(0, VOCAB_SIZE, 10_000)

Step = Callable[[Ids, Ids, bool], None]


class Shape(NamedTuple):
    """The shape of a training of an LSTM or a GRU."""

    vocab_size: int
    num_hiddens: int
    num_layers: int
    embedding_size: int
    dropout: float
    batch_size: int
    num_steps: int

    def flop_per_token(self, num_gates: int) -> float:
        """Return multiplications and additions of one token: forward once, backward twice."""
        hiddens = self.num_hiddens
        products = num_gates * hiddens * (self.embedding_size + hiddens * (2 * self.num_layers - 1))
        return 3 * 2 * (products + hiddens * self.vocab_size)


SHAPES = {"lstm": Shape(28, 256, 2, 64, 0.25, 32, 32), "shakespeare": Shape(66, 384, 1, 64, 0.05, 32, 16)}
GATES = {"lstm": 4, "gru": 3}
MINIBATCHES, ADAM_LR = 16, 1e-3


class Chapter:
    """One training step as the chapter writes it."""

    def __init__(self, num_hiddens: int, device: torch.device) -> None:
        shapes = [(VOCAB_SIZE, num_hiddens), (num_hiddens, num_hiddens), (num_hiddens,), (num_hiddens, VOCAB_SIZE)]
        self.params = [torch.randn(shape, device=device) * 0.01 for shape in [*shapes, (VOCAB_SIZE,)]]
        for param in self.params:
            param.requires_grad_()
        self.zeros = torch.zeros(BATCH_SIZE, num_hiddens, device=device)
        self.state = self.zeros

    def step(self, inputs: Ids, targets: Ids, carry: bool) -> None:
        w_xh, w_hh, b_h, w_hq, b_q = self.params
        tokens, wanted = (torch.from_numpy(ids).to(self.zeros.device) for ids in (inputs, targets))
        hidden, outputs = self.state.detach() if carry else self.zeros, []
        for one_hot in F.one_hot(tokens.T, VOCAB_SIZE).float():
            hidden = torch.tanh(one_hot @ w_xh + hidden @ w_hh + b_h)
            outputs.append(hidden @ w_hq + b_q)
        self.state = hidden
        loss = F.cross_entropy(torch.cat(outputs), wanted.T.reshape(-1)).mean()
        torch.autograd.backward(loss)
        with torch.no_grad():
            gradients = [param.grad for param in self.params if param.grad is not None]
            norm = sum(torch.sum(gradient**2) for gradient in gradients) ** 0.5
            for param, gradient in zip(self.params, gradients, strict=True):
                if norm > CLIP:
                    gradient[:] *= CLIP / norm
                param -= LR * gradient
                gradient.zero_()
        loss.item()  # the chapter sums up the loss as a number


class Ours:
    """One training step of this project, with the models scratch and rnn or the framework's layer."""

    def __init__(self, model: Network) -> None:
        self.model = model
        model.start_training("sgd")
        self.state = model.initial_state(BATCH_SIZE)

    def step(self, inputs: Ids, targets: Ids, carry: bool) -> None:
        state = self.state if carry else self.model.initial_state(BATCH_SIZE)
        _, self.state = self.model.compute_gradients(inputs, targets, state)
        self.model.clip_gradients(CLIP)
        self.model.step(LR)


def tokens_per_second(step: Step, sampler: Any, device: torch.device, epochs: int) -> float:
    start, num_tokens = time.perf_counter(), 0
    for _ in range(epochs):
        for inputs, targets in minibatches(sampler, TOKENS, BATCH_SIZE, NUM_STEPS, np.random.default_rng(0)):
            step(inputs, targets, sampler == "sequential")
            num_tokens += targets.size
    if device.type == "cuda":
        torch.cuda.synchronize()
    return num_tokens / (time.perf_counter() - start)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def multiply_panels(
    result: NDArray[np.float32], left: NDArray[np.float32], right: NDArray[np.float32], rows: int
) -> None:
    add_product(result, left, right, BatchRows(0, rows), 0)


def gemm_rate(device: torch.device) -> float:
    """Return the rate of a large float32 matrix product, in FLOP/s, which no training can exceed.

    On the CPU that is the faster of PyTorch's product and the compiled tiles, whose threads share nothing.
    """
    size = 2048
    left, right = torch.randn(size, size, device=device), torch.randn(size, size, device=device)

    def multiply() -> None:
        left @ right
        if device.type == "cuda":
            torch.cuda.synchronize()

    rate = 2 * size**3 / shortest(multiply)
    if device.type == "cpu":
        rows = 256
        result, part = empty_rows(1, rows, size), empty_rows(1, rows, size)
        panels = np.zeros(panels_shape(size, size), np.float32)
        tiled = 2 * rows * size**2 / shortest(lambda: multiply_panels(result, part, panels, rows))
        rate = max(rate, tiled * torch.get_num_threads())
    return rate


def shortest(work: Callable[[], None]) -> float:
    """Return the shortest of five times, in seconds, after a first one that does not count."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def flop_per_token(num_hiddens: int) -> float:
    """Return multiplications and additions of one token: forward once, backward twice."""
    return 3 * 2 * (num_hiddens**2 + num_hiddens * VOCAB_SIZE)


def compare(num_hiddens: int, sampler: str, device: torch.device, rounds: int, ceiling: float) -> None:
    settings = network_settings("rnn", "tanh", num_hiddens, NUM_STEPS)
    scratch = network_settings("scratch", "tanh", num_hiddens, NUM_STEPS)
    networks: dict[str, Network] = {
        "nn.RNN": FrameworkRNN(settings, VOCAB_SIZE).to(device),
        "rnn": build_network(settings, VOCAB_SIZE, 0, device, torch.get_num_threads()),
        "scratch": build_network(scratch, VOCAB_SIZE, 0, device, torch.get_num_threads()),
    }
    steps: dict[str, Step] = {"chapter": Chapter(num_hiddens, device).step}
    steps |= {name: Ours(network).step for name, network in networks.items()}
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        tokens_per_second(step, sampler, device, 1)
    for _ in range(rounds):
        for name, step in steps.items():
            with networks[name].thread_team() if name in networks else nullcontext():
                tokens_per_second(step, sampler, device, 1)
                rates[name].append(tokens_per_second(step, sampler, device, 4))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    share = medians["scratch"] * flop_per_token(num_hiddens) / ceiling
    print(
        f"{num_hiddens:>6} {sampler:<10} {torch.get_num_threads():>7} "
        + " ".join(f"{medians[name]:>10,.0f}" for name in steps)
        + f" {medians['rnn'] / medians['nn.RNN']:>8.2f}"
        + "".join(f" {medians['scratch'] / medians[other]:>8.2f}" for other in ("chapter", "nn.RNN"))
        + f" {share:>7.0%}",
        flush=True,
    )


def train_gated(network: Network, shape: Shape, device: torch.device, count: int) -> float:
    """Train for some minibatches, the framework's layers with its own AdamW, and return tokens per second."""
    rng = np.random.default_rng(0)
    ids = np.random.default_rng(0).integers(0, shape.vocab_size, (shape.batch_size, shape.num_steps + 1))

    def draw_mask(size: int, dropout: float) -> NDArray[np.float32]:
        return mask(rng, 1 - dropout, (shape.batch_size, 1, size))

    state = network.initial_state(shape.batch_size)
    network.start_training("adamw")
    step: Callable[[], object] = partial(network.step, ADAM_LR)
    if isinstance(network, FrameworkRNN):
        step = torch.optim.AdamW(network.parameters(), lr=ADAM_LR).step
    with network.thread_team():
        for minibatch in range(count + 1):
            if minibatch == 1:  # the first one makes buffers and starts threads
                start = time.perf_counter()
            _, state = network.compute_gradients(ids[:, :-1], ids[:, 1:], state, draw_mask)
            network.clip_gradients(CLIP)
            step()
        if device.type == "cuda":
            torch.cuda.synchronize()
    return count * shape.batch_size * shape.num_steps / (time.perf_counter() - start)


def compare_gated(model: str, name: str, device: torch.device, rounds: int, ceiling: float) -> None:
    shape = SHAPES[name]
    settings = NetworkSettings(
        model=model, activation="tanh", num_hiddens=shape.num_hiddens, num_layers=shape.num_layers, embedding="learned",
        num_heads=1, num_steps=shape.num_steps, embedding_size=shape.embedding_size, tie_weights=False,
        dropout=shape.dropout, engine="auto",
    )  # fmt: skip
    networks = [
        FrameworkRNN(settings, shape.vocab_size).to(device),
        build_network(settings, shape.vocab_size, 0, device, torch.get_num_threads()),
    ]
    for network in networks:
        train_gated(network, shape, device, 1)
    rates = [[train_gated(network, shape, device, MINIBATCHES) for network in networks] for _ in range(rounds)]
    theirs, ours = (statistics.median(column) for column in zip(*rates, strict=True))
    share = ours * shape.flop_per_token(GATES[model]) / ceiling
    print(
        f"{model:<6} {name:<12} {torch.get_num_threads():>7} {theirs:>10,.0f} {ours:>10,.0f}"
        f" {ours / theirs:>8.2f} {share:>8.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=["rnn", "gated"], default=["rnn", "gated"])
    arguments = parser.parse_args()
    device = torch.device(resolve_device(arguments.device))
    threads = arguments.threads if device.type == "cpu" else [1]
    ceilings = {}
    for count in threads:
        torch.set_num_threads(count)
        ceilings[count] = gemm_rate(device)
    print(origin())
    print("tokens per second, medians; ratios of ours to the others; share of the measured rate of a large product")
    if "rnn" in arguments.only:
        print("ratios: of rnn to nn.RNN, then of scratch to the chapter and to nn.RNN; share: of scratch")
        print(
            "hidden sampler    threads    chapter     nn.RNN        rnn    scratch  /nn.RNN /chapter  /nn.RNN   share"
        )
        for count in threads:
            torch.set_num_threads(count)
            for num_hiddens in (512, 256):
                for sampler in SAMPLERS:
                    compare(num_hiddens, sampler, device, arguments.rounds, ceilings[count])
    if "gated" in arguments.only:
        print("cells  shape        threads  framework   compiled    ratio    share")
        for count in threads:
            torch.set_num_threads(count)
            for model in GATES:
                for name in SHAPES:
                    compare_gated(model, name, device, arguments.rounds, ceilings[count])


if __name__ == "__main__":
    main()
