"""How far gradients reach back, in double precision."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from seqlm.core.elementary import Floats
from seqlm.networks.network import Network

_CELLS: dict[str, Callable[..., nn.RNNCellBase]] = {
    "scratch": nn.RNNCell, "relu": partial(nn.RNNCell, nonlinearity="relu"), "gru": nn.GRUCell, "lstm": nn.LSTMCell,
}  # fmt: skip
_LEAST_NORM = 1e-100
"""Smaller norms count as 0: their squares are too small for all their digits."""


def reach(model: str, network: Network, ids: NDArray[np.int64]) -> Floats:
    """Return the norm of the gradient of the last step's loss with respect to the state k steps before, k = 0 .. T - 1.

    ``model`` is "scratch", "relu", "gru" or "lstm". ``ids``: ``(B, T + 1)``, inputs and the last target; norms are
    means over batch rows. For an LSTM it is the hidden state, not the memory cell.
    """
    weights = {name: weight.double() for name, weight in network.named_weights().items()}
    if model == "scratch":
        of_cell = {"weight_ih": weights["W_xh"].T, "weight_hh": weights["W_hh"].T, "bias_ih": weights["b_h"]}
        of_cell["bias_hh"] = torch.zeros_like(weights["b_h"])
        w_hq, b_q = weights["W_hq"], weights["b_q"]
    else:
        of_cell = {name: weights[f"layers.0.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        w_hq, b_q = weights["output.weight"].T, weights["output.bias"]
    num_hiddens, vocab_size = w_hq.shape
    cell = _CELLS[model](vocab_size, num_hiddens, dtype=torch.float64)
    cell.load_state_dict(of_cell)
    inputs, targets = torch.from_numpy(ids[:, :-1].T), torch.from_numpy(ids[:, -1])
    state, states = None, []
    for one_hot in functional.one_hot(inputs, vocab_size).double():
        state = cell(one_hot, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    loss = functional.cross_entropy(states[-1] @ w_hq + b_q, targets, reduction="sum")
    gradients = torch.autograd.grad(loss, states[::-1])
    norms = np.array([float(gradient.norm(dim=1).mean()) for gradient in gradients])
    return np.where(norms < _LEAST_NORM, 0.0, norms)
