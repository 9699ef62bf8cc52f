"""How far gradients reach back."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from seqlm.gradients.short_runs import Callback, ShortRun, train_briefly
from seqlm.rnn.scratch import ScratchRNN

_CELLS: dict[str, Callable[[int, int], nn.RNNCellBase]] = {
    "relu": partial(nn.RNNCell, nonlinearity="relu"),
    "gru": nn.GRUCell,
    "lstm": nn.LSTMCell,
}


class Probe(nn.Module):
    """A small network of one layer whose states can be observed after each step."""

    def __init__(self, kind: Literal["relu", "gru", "lstm"], vocab_size: int, num_hiddens: int, seed: int) -> None:
        """Draw PyTorch's own initial weights from ``seed``."""
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.cell = _CELLS[kind](vocab_size, num_hiddens)
            self.output = nn.Linear(num_hiddens, vocab_size)
        self.vocab_size = vocab_size

    def states(self, ids: Tensor) -> list[Tensor]:
        """Return the hidden state after each step, T of ``(B, h)``, for ids ``(B, T)``."""
        state, states = None, []
        for one_hot in F.one_hot(ids.T, self.vocab_size).float():
            state = self.cell(one_hot, state)
            states.append(state[0] if isinstance(state, tuple) else state)  # that of an LSTM has a memory too
        return states


def probe_reach(probe: Probe, ids: Tensor) -> NDArray[np.float64]:
    """Return the norm of the gradient of the last step's loss by the state k steps before, k = 0 .. T - 1.

    ``ids``: ``(B, T + 1)``, inputs and the last target; norms are means over batch rows. For an LSTM it is the gradient
    by the hidden state, not by the memory cell.
    """
    states = probe.states(ids[:, :-1])
    for state in states:
        state.retain_grad()
    probe.zero_grad()
    torch.autograd.backward(F.cross_entropy(probe.output(states[-1]), ids[:, -1], reduction="sum"))
    norms = [float(state.grad.norm(dim=1).mean()) if state.grad is not None else 0.0 for state in states]
    return np.array(norms[::-1])


@torch.no_grad()
def scratch_reach(model: ScratchRNN, ids: Tensor) -> NDArray[np.float64]:
    """Return what :func:`probe_reach` does, for the RNN from scratch.

    The states come from the model itself, one step at a time. The gradient follows (8.7.14), with the derivative of the
    activation and without the outputs before the last step.
    """
    weights, state, states = model.named_weights(), model.initial_state(len(ids)), []
    for t in range(ids.shape[1] - 1):
        logits, state = model(ids[:, t : t + 1], state)
        states.append(state)
    d_logits = torch.softmax(logits[:, 0], 1) - F.one_hot(ids[:, -1], model.vocab_size)  # (8.7.11)
    gradient = d_logits @ weights["W_hq"].T  # (B, h)
    norms = []
    for later in reversed(states):
        norms.append(float(gradient.norm(dim=1).mean()))
        slope = 1 - later.square() if model.activation == "tanh" else (later > 0).to(later.dtype)
        gradient = (gradient * slope) @ weights["W_hh"].T
    return np.array(norms)


def train_probe(probe: Probe, ids: NDArray[np.integer], run: ShortRun, callback: Callback = lambda _: None) -> None:
    """Train a probe briefly: enough to leave its initial state."""

    def set_gradients(window: Tensor) -> float:
        states = torch.stack(probe.states(window[:, :-1]), 1)  # (B, T, h)
        loss = F.cross_entropy(probe.output(states).flatten(0, 1), window[:, 1:].flatten())
        probe.zero_grad()
        torch.autograd.backward(loss)
        return float(loss.detach())

    train_briefly(probe.parameters(), set_gradients, ids, run, callback)
