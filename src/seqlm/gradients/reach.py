"""How far gradients reach back, in double precision, and how much a token says about another at that distance."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import Floats, log, matmul, sigmoid, tanh
from seqlm.rnn.network import Network, probabilities


class SimpleCell:
    """h_t = phi(inputs + h_{t-1} W_hh), where phi is tanh or relu. Like the other cells, it remembers its steps."""

    def __init__(self, w_hh: Floats, bias: Floats, *, has_tanh: bool) -> None:
        self._w_hh, self._bias, self._has_tanh = w_hh, bias, has_tanh
        self._slopes: list[Floats] = []

    def forward(self, inputs: Floats, state: Floats) -> Floats:
        """Return the next state ``(B, h)``; ``inputs`` ``(B, gates * h)`` have been through their weights."""
        values = inputs + matmul(state, self._w_hh) + self._bias
        after = tanh(values) if self._has_tanh else np.maximum(values, 0)
        self._slopes.append(1 - after * after if self._has_tanh else (values > 0).astype(np.float64))
        return after

    def backward(self, gradient: Floats) -> Floats:
        """Undo the last step (8.7.14): turn the gradient with respect to the state after it into that before it."""
        return matmul(gradient * self._slopes.pop(), self._w_hh.T)


class GRUCell:
    """A gated recurrent unit, with PyTorch's order of the gates."""

    def __init__(self, w_hh: Floats, bias: Floats) -> None:
        self._w_hh, self._bias = w_hh, bias
        self._steps: list[tuple[Floats, ...]] = []

    def forward(self, inputs: Floats, state: Floats) -> Floats:
        """Do what :meth:`SimpleCell.forward` does."""
        of_inputs, of_state = np.split(inputs, 3, 1), np.split(matmul(state, self._w_hh) + self._bias, 3, 1)
        reset, update = (sigmoid(of_inputs[gate] + of_state[gate]) for gate in (0, 1))
        new = tanh(of_inputs[2] + reset * of_state[2])
        self._steps.append((state, reset, update, new, of_state[2]))
        return (1 - update) * new + update * state

    def backward(self, gradient: Floats) -> Floats:
        """Do what :meth:`SimpleCell.backward` does."""
        state, reset, update, new, of_state = self._steps.pop()
        d_new = gradient * (1 - update) * (1 - new * new)
        d_update = gradient * (state - new) * update * (1 - update)
        d_reset = d_new * of_state * reset * (1 - reset)
        return gradient * update + matmul(np.hstack([d_reset, d_update, d_new * reset]), self._w_hh.T)


class LSTMCell:
    """A long short-term memory, with PyTorch's order of the gates. It keeps its memory cell to itself."""

    def __init__(self, w_hh: Floats, bias: Floats) -> None:
        self._w_hh, self._bias = w_hh, bias
        self._memory: Floats | float = 0.0
        self._d_memory: Floats | float = 0.0
        self._steps: list[tuple[Floats, ...]] = []

    def forward(self, inputs: Floats, state: Floats) -> Floats:
        """Do what :meth:`SimpleCell.forward` does."""
        values = np.split(inputs + matmul(state, self._w_hh) + self._bias, 4, 1)
        enter, forget, new, leave = sigmoid(values[0]), sigmoid(values[1]), tanh(values[2]), sigmoid(values[3])
        before = self._memory + np.zeros_like(enter)
        self._memory = forget * before + enter * new
        shown = tanh(self._memory)
        self._steps.append((before, enter, forget, new, leave, shown))
        return leave * shown

    def backward(self, gradient: Floats) -> Floats:
        """Do what :meth:`SimpleCell.backward` does; what the memory cells send back is carried along."""
        before, enter, forget, new, leave, shown = self._steps.pop()
        d_memory = self._d_memory + gradient * leave * (1 - shown * shown)
        gates = [
            d_memory * new * enter * (1 - enter),
            d_memory * before * forget * (1 - forget),
            d_memory * enter * (1 - new * new),
            gradient * shown * leave * (1 - leave),
        ]
        self._d_memory = d_memory * forget
        return matmul(np.hstack(gates), self._w_hh.T)


def reach(model: str, network: Network, ids: NDArray[np.int64]) -> Floats:
    """Return the norm of the gradient of the last step's loss with respect to the state k steps before, k = 0 .. T - 1.

    ``model`` is "scratch", "relu", "gru" or "lstm". ``ids``: ``(B, T + 1)``, inputs and the last target; norms are
    means over batch rows. For an LSTM it is the hidden state, not the memory cell.
    """
    weights = {name: weight.cpu().double().numpy() for name, weight in network.named_weights().items()}
    if model == "scratch":
        w_xh, b_x, w_hq, b_q = (weights[name] for name in ("W_xh", "b_h", "W_hq", "b_q"))
        cell: SimpleCell | GRUCell | LSTMCell = SimpleCell(weights["W_hh"], np.zeros_like(b_x), has_tanh=True)
    else:
        w_xh, w_hh = weights["layers.0.weight_ih_l0"].T, weights["layers.0.weight_hh_l0"].T
        b_x, b_h = weights["layers.0.bias_ih_l0"], weights["layers.0.bias_hh_l0"]
        w_hq, b_q = weights["output.weight"].T, weights["output.bias"]
        if model == "relu":
            cell = SimpleCell(w_hh, b_h, has_tanh=False)
        else:
            cell = GRUCell(w_hh, b_h) if model == "gru" else LSTMCell(w_hh, b_h)
    state = np.zeros((len(ids), len(w_hq)))
    for column in ids[:, :-1].T:
        state = cell.forward(w_xh[column] + b_x, state)  # a one-hot vector times W_xh is a row of W_xh
    logits = matmul(state, w_hq) + b_q
    d_logits = probabilities(logits)
    d_logits[np.arange(len(ids)), ids[:, -1]] -= 1  # (8.7.11)
    gradient, norms = matmul(d_logits, w_hq.T), []
    for _ in range(ids.shape[1] - 1):
        norms.append(float(np.sqrt((gradient * gradient).sum(1)).mean()))
        gradient = cell.backward(gradient)
    return np.array(norms)


def mutual_information(ids: NDArray[np.integer], distances: Sequence[int], vocab_size: int) -> NDArray[np.float64]:
    """Return the mutual information, in bits, between tokens at each distance.

    The bias of finite counts is corrected as by Miller and Madow: the estimate is (cells - rows - columns + 1) / (2 N)
    nats too high, counting the cells, rows and columns that occur. If most cells hold one pair or none, this corrects
    too little: see :func:`shuffled_information`.
    """
    wide, bits = np.asarray(ids, np.int64), []
    for distance in distances:
        pairs = np.bincount(wide[:-distance] * vocab_size + wide[distance:], minlength=vocab_size**2)
        joint = pairs.reshape(vocab_size, vocab_size) / pairs.sum()
        rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
        seen = joint > 0
        nats = float((joint[seen] * log(joint[seen] / (rows * columns)[seen])).sum())
        excess = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * pairs.sum())
        bits.append((nats - excess) / math.log(2))
    return np.array(bits)


def shuffled_information(
    ids: NDArray[np.integer], distances: Sequence[int], vocab_size: int, num_shuffles: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation, in bits, of the estimate on shuffled copies of a text.

    Shuffled tokens say nothing about each other, so the mean is the remaining bias of the estimate, and the deviation
    its variation by chance. Each of shape ``(distances,)``.
    """
    rng = np.random.default_rng(seed)
    bits = [mutual_information(rng.permutation(ids), distances, vocab_size) for _ in range(num_shuffles)]
    return np.mean(bits, axis=0), np.std(bits, axis=0, ddof=1)
