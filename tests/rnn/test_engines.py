"""Section 8.6's network as compiled loops and as the framework's layer: they start and train alike."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from compiled_networks import network_settings
from seqlm.rnn.framework import FrameworkRNN
from small_training import config, trained

Weights = dict[str, NDArray[np.float64]]


def gradients_by_the_equations(
    weights: Weights, inputs: NDArray[np.int64], targets: NDArray[np.int64], num_layers: int
) -> Weights:
    """Return the gradients of the mean loss of a tanh RNN in double precision, as the compiled loops compute them.

    H_t = tanh(X_t W_ih + b_ih + H_{t-1} W_hh + b_hh) in each layer, backpropagated from the last step to the first.
    """
    (batch_size, num_steps), layers = inputs.shape, [f"layers.{layer}" for layer in range(num_layers)]
    xs, hs = [np.eye(len(weights["output.bias"]))[inputs]], []  # (B, T, V)
    for layer in layers:
        w_ih, w_hh, b_ih, b_hh = (
            weights[f"{layer}.{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        states = [np.zeros((batch_size, len(b_ih)))]
        for t in range(num_steps):
            states.append(np.tanh(xs[-1][:, t] @ w_ih.T + b_ih + states[-1] @ w_hh.T + b_hh))
        hs.append(np.stack(states, 1))  # (B, T + 1, h)
        xs.append(hs[-1][:, 1:])
    logits = xs[-1] @ weights["output.weight"].T + weights["output.bias"]
    d_logits = np.exp(logits) / np.exp(logits).sum(2, keepdims=True) - np.eye(logits.shape[2])[targets]
    d_logits /= targets.size
    found = {"output.weight": np.einsum("btv,bth->vh", d_logits, xs[-1]), "output.bias": d_logits.sum((0, 1))}
    above = d_logits @ weights["output.weight"]  # (B, T, h)
    for number, layer in reversed(list(enumerate(layers))):
        deltas, later = np.empty_like(above), np.zeros_like(above[:, 0])
        for t in reversed(range(num_steps)):
            later = deltas[:, t] = (above[:, t] + later @ weights[f"{layer}.weight_hh_l0"]) * (
                1 - hs[number][:, t + 1] ** 2
            )
        found[f"{layer}.weight_ih_l0"] = np.einsum("bth,bti->hi", deltas, xs[number])
        found[f"{layer}.weight_hh_l0"] = np.einsum("bth,bti->hi", deltas, hs[number][:, :-1])
        found[f"{layer}.bias_ih_l0"] = found[f"{layer}.bias_hh_l0"] = deltas.sum((0, 1))
        above = deltas @ weights[f"{layer}.weight_ih_l0"]
    return found


@pytest.mark.parametrize("num_layers", [1, 2])
def test_the_equations_give_the_framework_s_gradients_in_double_precision(num_layers: int) -> None:
    network = FrameworkRNN(network_settings("rnn", num_layers=num_layers), 7, 0).double()
    ids = torch.randint(0, 7, (3, 11), generator=torch.Generator().manual_seed(0))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    network.compute_gradients(inputs, targets, network.initial_state(3))
    weights = {name: weight.numpy() for name, weight in network.named_weights().items()}
    wanted = gradients_by_the_equations(weights, inputs.numpy(), targets.numpy(), num_layers)
    for name, parameter in network.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), wanted[name], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("sampling", ["sequential", "random"])
def test_both_engines_train_alike_for_20_epochs(sampling: str) -> None:
    """They differ by rounding alone, which training carries on."""
    cycle, ended = np.tile([1, 2, 3, 1, 4, 5], 60), {}
    for engine in ("auto", "framework"):
        run = config(model="rnn", num_hiddens=24, num_layers=2, num_epochs=20, sampling=sampling, engine=engine)
        ended[engine] = trained(run, cycle)
    compiled, framework = ended["auto"], ended["framework"]
    assert (compiled.network.engine, framework.network.engine) == ("compiled", "framework")
    curves = [[row.train_perplexity for row in one.progress.history] for one in (compiled, framework)]
    assert curves[0] == pytest.approx(curves[1], rel=1e-3)
    assert curves[0][-1] < 1.5 < curves[0][0]
    for name, weight in compiled.network.weights().items():
        torch.testing.assert_close(weight, framework.network.weights()[name], rtol=1e-2, atol=1e-3)
