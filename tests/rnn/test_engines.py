"""Section 8.6's network as compiled loops and as the framework's layer: the same gradients, the same training."""

import numpy as np
import pytest
import torch

from compiled_networks import network_settings
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scratch import ScratchRNN
from small_training import config, trained


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_framework_s_layer_has_the_gradients_of_the_equations(activation: str) -> None:
    framework = FrameworkRNN(network_settings("rnn", activation=activation), 7, 0).double()
    by_equations = ScratchRNN(7, 8, activation, torch.Generator()).double()
    weights = framework.named_weights()
    by_equations.load_weights(
        {
            "W_xh": weights["layers.0.weight_ih_l0"].T,
            "W_hh": weights["layers.0.weight_hh_l0"].T,
            "b_h": weights["layers.0.bias_ih_l0"] + weights["layers.0.bias_hh_l0"],
            "W_hq": weights["output.weight"].T,
            "b_q": weights["output.bias"],
        }
    )
    ids = torch.randint(0, 7, (3, 11), generator=torch.Generator().manual_seed(0))
    for network in (framework, by_equations):
        network.compute_gradients(ids[:, :-1], ids[:, 1:], network.initial_state(3))
    found, wanted = by_equations.named_gradients(), {name: p.grad for name, p in framework.named_parameters()}
    for name, gradient in {
        "layers.0.weight_ih_l0": found["W_xh"].T,
        "layers.0.weight_hh_l0": found["W_hh"].T,
        "layers.0.bias_ih_l0": found["b_h"],
        "layers.0.bias_hh_l0": found["b_h"],
        "output.weight": found["W_hq"].T,
        "output.bias": found["b_q"],
    }.items():
        torch.testing.assert_close(gradient, wanted[name], rtol=1e-10, atol=1e-14)


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
