"""The from-scratch RNN against automatic differentiation and against the book's equations."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiled_networks import network_settings
from seqlm.networks.building import build_network
from seqlm.networks.initial import mask, masks_rng
from seqlm.networks.scratch import ScratchRNN

V, H, B, T = 7, 5, 3, 6


def make(activation: str = "tanh") -> ScratchRNN:
    model = ScratchRNN(network_settings("scratch", num_hiddens=H, activation=activation), V).double()
    generator = torch.Generator().manual_seed(1)
    for weight in model.named_weights().values():
        # Larger weights than the book's, so that every term of the gradients counts.
        weight.normal_(0, 0.5, generator=generator)
    return model


def draw() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(0, V, (B, T + 1), generator=generator)
    return ids[:, :-1], ids[:, 1:], torch.randn(B, H, generator=generator, dtype=torch.float64)


def by_autograd(
    model: ScratchRNN, inputs: Tensor, targets: Tensor, state: Tensor, keep: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the mean loss and its gradients from the equations as the book writes them."""
    weights = {name: weight.clone().requires_grad_() for name, weight in model.named_weights().items()}
    activate = torch.tanh if model.activation == "tanh" else torch.relu
    logits = []
    for t in range(inputs.shape[1]):
        one_hot = F.one_hot(inputs[:, t], V).to(state.dtype)
        # The value of the state passes whole, its gradient is scaled.
        sent = state * keep[t][:, None] + (state * (1 - keep[t])[:, None]).detach()
        state = activate(one_hot @ weights["W_xh"] + sent @ weights["W_hh"] + weights["b_h"])
        logits.append(state @ weights["W_hq"] + weights["b_q"])
    loss = F.cross_entropy(torch.stack(logits, 1).flatten(0, 1), targets.flatten())
    torch.autograd.backward(loss)
    return loss.detach(), {name: weight.grad for name, weight in weights.items() if weight.grad is not None}


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("keep_probability", [1, 0.5])
def test_gradients_equal_those_of_autograd(activation: str, keep_probability: float) -> None:
    model, (inputs, targets, state) = make(activation), draw()
    keep = mask(masks_rng(3), keep_probability, (T, B))
    nats, _ = model.compute_gradients(inputs, targets, state, gradient_mask=keep if keep_probability < 1 else None)
    loss, expected = by_autograd(model, inputs, targets, state, torch.from_numpy(keep))
    assert float(nats.mean()) == pytest.approx(float(loss), rel=1e-12)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-10, atol=1e-12)


def test_weights_start_as_in_the_book() -> None:
    network = build_network(network_settings("scratch", num_hiddens=512), 28, 0)
    weights = network.named_weights()
    assert float(weights["W_hh"].std()) == pytest.approx(0.01, rel=0.02)
    assert not weights["b_h"].any()
    assert not weights["b_q"].any()
    # 28 * 512 + 512 * 512 + 512 + 512 * 28 + 28
    assert network.num_parameters == 291_356
