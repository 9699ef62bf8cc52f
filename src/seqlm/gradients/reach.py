"""How far gradients reach back."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.gradients.short_runs import Callback, Plan, train_briefly
from seqlm.rnn.scratch import ScratchRNN


class Probe(nn.Module):
    """A small network of one layer whose states can be watched one step at a time."""

    def __init__(self, kind: Literal["relu", "gru", "lstm"], vocab_size: int, num_hiddens: int, seed: int) -> None:
        """Draw PyTorch's own initial weights from ``seed``."""
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            cells: dict[str, Any] = {
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

    ``ids``: ``(B, T + 1)``, inputs and the last target; norms are means over lanes. Of an
    LSTM it is the hidden state's gradient, not that of its memory.
    """
    states = probe.states(ids[:, :-1])
    for state in states:
        state.retain_grad()
    losses = F.cross_entropy(probe.output(states[-1]), ids[:, -1], reduction="sum")
    probe.zero_grad()
    torch.autograd.backward(losses)
    norms = [float(state.grad.norm(dim=1).mean()) if state.grad is not None else 0.0 for state in states]
    return np.array(norms[::-1])


@torch.no_grad()
def scratch_reach(model: ScratchRNN, ids: Tensor) -> NDArray[np.float64]:
    """Return what :func:`gradient_reach` does, of the RNN from scratch.

    The states come from the model itself, one step at a time; back goes (8.7.14) with the
    slope of the activation and without the outputs before the last step.
    """
    weights, state, states = model.named_weights(), model.initial_state(len(ids)), []
    for t in range(ids.shape[1] - 1):
        logits, state = model(ids[:, t : t + 1], state)
        states.append(state)
    wrong = torch.softmax(logits[:, 0], 1) - F.one_hot(ids[:, -1], model.vocab_size)  # (8.7.11)
    gradient = wrong @ weights["W_hq"].T  # (B, h)
    norms = []
    for later in reversed(states):
        norms.append(float(gradient.norm(dim=1).mean()))
        slope = 1 - later.square() if model.activation == "tanh" else (later > 0).to(later.dtype)
        gradient = (gradient * slope) @ weights["W_hh"].T
    return np.array(norms)


def train_probe(probe: Probe, ids: NDArray[np.integer], plan: Plan, watch: Callback = lambda _: None) -> None:
    """Train a probe as ``plan`` says: enough to leave its initial state."""

    def set_gradients(window: Tensor) -> float:
        states = torch.stack(probe.states(window[:, :-1]), 1)  # (B, T, h)
        loss = F.cross_entropy(probe.output(states).flatten(0, 1), window[:, 1:].flatten())
        probe.zero_grad()
        torch.autograd.backward(loss)
        return float(loss.detach())

    train_briefly(probe.parameters(), set_gradients, ids, plan, watch)
