"""How far gradients reach back, what truncation does to them, and how far the data reaches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.errors import DataError
from seqlm.rnn.scratch import ScratchRNN


class Probe(nn.Module):
    """A small network of one layer whose states can be watched one step at a time."""

    def __init__(self, kind: str, vocab_size: int, num_hiddens: int, seed: int) -> None:
        """``kind``: "tanh", "relu", "gru" or "lstm"; weights are PyTorch's own, drawn from ``seed``."""
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            cells: dict[str, Any] = {
                "tanh": lambda: nn.RNNCell(vocab_size, num_hiddens, nonlinearity="tanh"),
                "relu": lambda: nn.RNNCell(vocab_size, num_hiddens, nonlinearity="relu"),
                "gru": lambda: nn.GRUCell(vocab_size, num_hiddens),
                "lstm": lambda: nn.LSTMCell(vocab_size, num_hiddens),
            }
            self.cell = cells[kind]()
            self.output = nn.Linear(num_hiddens, vocab_size)
        self.vocab_size, self.num_hiddens, self._is_lstm = vocab_size, num_hiddens, kind == "lstm"

    def states(self, ids: Tensor) -> list[Tensor]:
        """Return the hidden state after each step, T of ``(B, h)``, for ids ``(B, T)``."""
        hidden = torch.zeros(len(ids), self.num_hiddens)
        memory, found = hidden, []
        for one_hot in F.one_hot(ids.T, self.vocab_size).float():
            if self._is_lstm:
                hidden, memory = self.cell(one_hot, (hidden, memory))
            else:
                hidden = self.cell(one_hot, hidden)
            found.append(hidden)
        return found


def gradient_reach(probe: Probe, ids: Tensor) -> NDArray[np.float64]:
    """Return the norm of the gradient of the last step's loss by the state k steps before, k = 0 .. T - 1.

    ``ids``: ``(B, T + 1)``, inputs and the last target; norms are means over lanes.
    """
    states = probe.states(ids[:, :-1])
    for state in states:
        state.retain_grad()
    losses = F.cross_entropy(probe.output(states[-1]), ids[:, -1], reduction="sum")
    probe.zero_grad()
    torch.autograd.backward(losses)
    norms = [float(state.grad.norm(dim=1).mean()) if state.grad is not None else 0.0 for state in states]
    return np.array(norms[::-1])


def train_probe(probe: Probe, ids: NDArray[np.integer], num_minibatches: int, num_steps: int, seed: int) -> None:
    """Train a probe with Adam on random windows of a text: enough to leave its initial state."""
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.01)
    rng = np.random.default_rng(seed)
    for _ in range(num_minibatches):
        window = draw_windows(ids, 32, num_steps, rng)
        states = torch.stack(probe.states(window[:, :-1]), 1)  # (B, T, h)
        loss = F.cross_entropy(probe.output(states).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(probe.parameters(), 1.0)
        optimizer.step()


def draw_windows(ids: NDArray[np.integer], batch_size: int, num_steps: int, rng: np.random.Generator) -> Tensor:
    """Return random windows of ``num_steps + 1`` tokens, shape ``(batch_size, num_steps + 1)``.

    Raises DataError where the text is too short for one.
    """
    if len(ids) <= num_steps:
        raise DataError(f"train has {len(ids)} tokens: gradients.num_steps must be at most {len(ids) - 1}")
    starts = rng.integers(0, len(ids) - num_steps, batch_size)
    return torch.from_numpy(np.asarray(ids)[starts[:, None] + np.arange(num_steps + 1)].astype(np.int64))


def truncation_errors(
    model: ScratchRNN, window: Tensor, lengths: Sequence[int], num_draws: int, seed: int
) -> list[tuple[str, int, float, float, float]]:
    """Return how truncated gradients of all weights differ: rows of strategy, length, bias, spread, standard error.

    All are shares of the norm of the full gradient over ``window``, ``(B, T + 1)``.
    *Regular* cuts every ``length`` steps, at an offset that is drawn; *randomized* cuts
    each step with chance 1 / length and divides what goes on by the chance of going on;
    at length 1 that chance would be 0, outside (0, 1], so there is no such row.
    The spread is the root mean square distance of a draw from the mean over draws; a bias
    within a few standard errors, spread / sqrt(draws), is none that can be seen.
    """
    generator = torch.Generator().manual_seed(seed)
    num_steps, batch_size = window.shape[1] - 1, len(window)

    def gradient(keep: Tensor | None) -> Tensor:
        model.compute_gradients(window[:, :-1], window[:, 1:], model.initial_state(batch_size), keep)
        assert model.flat.grad is not None
        return model.flat.grad.double().clone()

    full = gradient(None)
    rows = []
    for strategy in ("regular", "randomized"):
        for length in lengths:
            if strategy == "randomized" and length == 1:
                continue
            draws = []
            for _ in range(num_draws):
                if strategy == "regular":
                    offset = int(torch.randint(length, (1,), generator=generator))
                    keep = ((torch.arange(num_steps) + offset) % length != 0).float()[:, None].expand(-1, batch_size)
                else:
                    chance = 1 - 1 / length
                    keep = torch.empty(num_steps, batch_size).bernoulli_(chance, generator=generator) / chance
                draws.append(gradient(keep))
            stacked = torch.stack(draws)
            mean = stacked.mean(0)
            bias = float((mean - full).norm() / full.norm())
            spread = float((stacked - mean).pow(2).sum(1).mean().sqrt() / full.norm())
            rows.append((strategy, length, bias, spread, spread / num_draws**0.5))
    return rows


def mutual_information(ids: NDArray[np.integer], distances: Sequence[int], vocab_size: int) -> NDArray[np.float64]:
    """Return the mutual information, in bits, between tokens at each distance.

    Corrected for the bias of finite counts by Miller and Madow: (cells - rows - columns + 1)
    / (2 N) nats too much, where cells, rows and columns are those that occur.
    """
    wide, found = np.asarray(ids, np.int64), []
    for distance in distances:
        pairs = np.bincount(wide[:-distance] * vocab_size + wide[distance:], minlength=vocab_size**2)
        joint = pairs.reshape(vocab_size, vocab_size) / pairs.sum()
        rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
        seen = joint > 0
        nats = float((joint[seen] * np.log(joint[seen] / (rows * columns)[seen])).sum())
        excess = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * pairs.sum())
        found.append((nats - excess) / np.log(2))
    return np.array(found)
