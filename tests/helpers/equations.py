"""The equations of section 8.7 as the book writes them, for checking and teaching: the guide shows them.

The linear RNN of the book is h_t = W_hx x_t + W_hh h_{t-1}, o_t = W_qh h_t, with the
objective L = 1/T sum_t l(o_t, y_t) (8.7.10) and h_0 = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearRNN:
    """Weights of the linear RNN: W_hx (h, d), W_hh (h, h), W_qh (q, h)."""

    w_hx: Array
    w_hh: Array
    w_qh: Array

    def states(self, inputs: Array) -> Array:
        """Return h_0 to h_T, shape ``(T + 1, h)``, for inputs ``(T, d)``."""
        states = [np.zeros(len(self.w_hh))]
        for x in inputs:
            states.append(self.w_hx @ x + self.w_hh @ states[-1])
        return np.array(states)


def linear_gradients(model: LinearRNN, inputs: Array, output_gradients: Array) -> dict[str, Array]:
    """Return the gradients of L by (8.7.12), (8.7.15) and (8.7.16).

    ``output_gradients``: dL/do_t by (8.7.11), 1/T dl/do_t, shape ``(T, q)``.
    """
    states = model.states(inputs)
    steps = range(1, len(inputs) + 1)
    by_state = {t: state_gradient(model, output_gradients, t) for t in steps}
    return {
        "w_qh": np.sum([np.outer(output_gradients[t - 1], states[t]) for t in steps], axis=0),  # (8.7.12)
        "w_hx": np.sum([np.outer(by_state[t], inputs[t - 1]) for t in steps], axis=0),  # (8.7.16)
        "w_hh": np.sum([np.outer(by_state[t], states[t - 1]) for t in steps], axis=0),  # (8.7.16)
    }


def state_gradient(model: LinearRNN, output_gradients: Array, t: int) -> Array:
    """Return dL/dh_t by the closed sum (8.7.15), shape ``(h,)``; t counts from 1.

    At t = T it has one term, (8.7.13); the recursion (8.7.14) gives the same sum.
    """
    num_steps = len(output_gradients)
    total = np.zeros(len(model.w_hh))
    for i in range(t, num_steps + 1):
        power = np.linalg.matrix_power(model.w_hh.T, num_steps - i)
        total += power @ model.w_qh.T @ output_gradients[num_steps + t - i - 1]
    return total


def truncated_derivative(local: Array, factors: Array, tau: int) -> float:
    """Return dh_T/dw of a scalar recurrence by the sum (8.7.7), stopped after ``tau`` steps back.

    ``local[t]`` is the partial derivative of f(x_t, h_{t-1}, w) by w, and ``factors[t]`` the one by h_{t-1}, for steps
    0 .. T - 1. tau = 0 keeps only the last term.
    """
    last = len(local) - 1
    total, product = 0.0, 1.0
    for back in range(min(tau, last) + 1):
        total += product * local[last - back]
        product *= factors[last - back]
    return float(total)


def randomized_derivative(
    local: Array, factors: Array, probability: Callable[[int], float], rng: np.random.Generator
) -> float:
    """Return one draw of the randomized truncation (8.7.8).

    At step t the recurrence continues with ``probability(t)``, and what it sends back is divided by that, so that the
    mean over draws is the full derivative.
    """
    total, product = 0.0, 1.0
    for t in range(len(local) - 1, -1, -1):
        total += product * local[t]
        p = probability(t)
        if rng.random() >= p:
            break
        product *= factors[t] / p
    return float(total)
