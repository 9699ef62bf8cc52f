"""Dynamic evaluation of networks, and the rule of its updates."""

import platform

import numpy as np
import pytest
import torch

from compiled_networks import scratch_network, strong_network, threads
from seqlm.rnn.array_network import stream_nll
from seqlm.rnn.building import build_network
from seqlm.rnn.compiled.network import CompiledNetwork
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.specs import scratch_parameters
from seqlm.score.networks import DAMPING, DynamicRule, dynamic_nll, gradient_roots, trained_weights
from small_runs import config


def floats(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def with_weights(weights: list[float], gradients: list[float]) -> CompiledNetwork:
    """Return a network that can do nothing but change its weights."""
    network = CompiledNetwork(scratch_parameters(config(num_hiddens=2), 2).spec, floats(weights))
    network.gradient[:] = gradients
    return network


def test_a_network_learns_from_the_text_before_each_update_and_from_nothing_else() -> None:
    ids, model = np.tile([1, 2, 3], 100), strong_network()
    before = model.flat.detach().clone()
    roots = gradient_roots(model, ids, segment_length=6, num_segments=10)
    rule = DynamicRule(0.05, 0.001, roots, trained_weights(model))
    adapted = dynamic_nll(model, ids, update_every=6, update=rule.apply)
    static = stream_nll(model, ids)
    assert adapted[:6] == pytest.approx(static[:6], rel=1e-5)  # nothing is learned before the first update
    assert adapted[-30:].mean() < static[-30:].mean() / 2
    assert torch.equal(model.flat, before)
    changed = ids.copy()
    changed[-1] = 5
    assert dynamic_nll(model, changed, update_every=6, update=rule.apply)[:-1] == pytest.approx(adapted[:-1])


def is_subnormal(numbers: np.ndarray) -> np.ndarray:
    bits = numbers.view(np.int32) & 0x7FFFFFFF
    return (bits > 0) & (bits < 1 << 23)


def test_subnormal_numbers_are_zero_during_dynamic_evaluation() -> None:
    """A token that is e to the -86 as likely as another gets a gradient of 4e-38 at most, over 32 tokens 1e-39."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("this processor is not told to treat subnormal numbers as zero")
    network, ids, seen = scratch_network(40, 128), np.tile([1, 2], 50), []
    network.named_weights()["b_q"][10:] = -86.0
    dynamic_nll(network, ids, update_every=32, update=lambda adapted: seen.append(adapted.gradients[0].copy()))
    assert len(seen) == 4
    assert not any(is_subnormal(gradient).any() for gradient in seen)
    network.compute_gradients(torch.tensor([[1, 2] * 16]), torch.tensor([[2, 1] * 16]), network.initial_state(1))
    assert is_subnormal(network.flat.grad.numpy()).any()  # afterwards they are kept again


@pytest.mark.parametrize(
    ("num_tokens", "length", "segments"),
    # The first tokens of each segment and of its warm-up, which has at most 64 tokens.
    [(121, 30, [(0, 0), (90, 26)]), (5, 2, [(0, 0), (2, 0)])],
)
def test_root_mean_squares_are_those_of_segments_after_a_warm_up(
    num_tokens: int, length: int, segments: list[tuple[int, int]]
) -> None:
    model, ids = strong_network(), np.random.default_rng(0).integers(1, 6, num_tokens)
    stream, squares = torch.from_numpy(ids)[None], []
    for start, read in segments:
        state = model.initial_state(1)
        for index in range(read, start):
            _, state = model(stream[:, index : index + 1], state)
        inputs, targets = stream[:, start : start + length], stream[:, start + 1 : start + length + 1]
        model.compute_gradients(inputs, targets, state)
        squares.append(model.flat.grad.square())
    (root,) = gradient_roots(model, ids, segment_length=length, num_segments=2)
    torch.testing.assert_close(torch.from_numpy(root), ((squares[0] + squares[1]) / 2).sqrt())
    assert gradient_roots(model, ids[:1], segment_length=2, num_segments=2)[0].sum() == 0


def test_an_update_by_hand() -> None:
    network = with_weights([1, 1, 1], gradients=[0.2, -0.4, 0])
    DynamicRule(0.1, 0.5, [floats([0.1, 0.2, 0.3])], [floats([0, 0, 3])]).apply(network)
    # The average root is 0.2. Damped by 0.3 times it, the divisors are 0.16, 0.26 and 0.36, and the steps
    # -0.1 * 0.2 / 0.16, 0.1 * 0.4 / 0.26 and 0. Roots of 0.5, 1 and 1.5 times their average, times the decay of 0.5,
    # are the shares of the way back: 0.25, 0.5 and 0.75.
    expected = [0.75 * (1 - 0.02 / 0.16), 0.5 * (1 + 0.04 / 0.26), 0.25 + 0.75 * 3]
    assert network.flat == pytest.approx(expected, rel=1e-6)


def test_a_parameter_without_gradients_on_train_takes_no_huge_step() -> None:
    """Tokens that train hardly has leave a root mean square of almost zero."""
    network = with_weights([0, 0], gradients=[0, 0.1])
    DynamicRule(0.001, 0.0, [floats([0.2, 1e-9])], [floats([0, 0])]).apply(network)
    assert np.abs(network.flat).max() <= 1.0001 * 0.001 * 0.1 / (DAMPING * 0.1)


@pytest.mark.parametrize("num_hiddens", [8, 128])
def test_any_number_of_threads_gives_the_same_roots(num_hiddens: int) -> None:
    model, ids = scratch_network(6, num_hiddens), np.tile([1, 2, 3, 4, 5], 100)
    found = []
    for num_threads in (1, 2, 3):
        with threads(num_threads):
            found.append(gradient_roots(model, ids, segment_length=6, num_segments=50)[0])
    assert found[0].any()
    assert all(np.array_equal(roots, found[0]) for roots in found)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_compiled_loops_and_the_framework_s_layers_learn_the_same(kind: str) -> None:
    settings = config(model=kind, num_hiddens=128, num_layers=2, embedding="learned", embedding_size=20, dropout=0.3)
    ids, found = np.random.default_rng(0).integers(1, 6, 200), []
    for network in (FrameworkRNN(settings, 6, 0), build_network(settings, 6, 0)):
        roots = gradient_roots(network, ids, segment_length=8, num_segments=10)
        rule = DynamicRule(0.002, 0.005, roots, trained_weights(network))
        found.append(dynamic_nll(network, ids, update_every=8, update=rule.apply))
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert np.abs(found[0] - stream_nll(FrameworkRNN(settings, 6, 0), ids)).max() > 0.01
