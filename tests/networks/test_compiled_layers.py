"""Networks as compiled loops, against their equations or the framework's layers in double precision, and themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from compiled_networks import compute, distance, network_settings, scratch_network
from seqlm.networks.building import build_network, open_network, save_network
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.framework import FrameworkRNN
from seqlm.networks.initial import mask, masks_rng
from seqlm.networks.network import DropoutMask, continue_prefixes
from seqlm.networks.scratch import ScratchRNN
from seqlm.networks.settings import NetworkSettings
from seqlm.networks.torch_network import TorchNetwork
from small_training import equal
from stages_by_hand import run_python, succeeded

V, B, T = 29, 11, 9
CELLS = {
    "tanh": {"model": "rnn"},
    "relu": {"model": "rnn", "activation": "relu"},
    "lstm": {"model": "lstm"},
    "gru": {"model": "gru"},
}
FORMS = {
    "one layer": {},
    "one-hot, three layers": {"num_layers": 3},
    "learned": {"embedding": "learned", "embedding_size": 4},
    "learned, dropout": {"embedding": "learned", "embedding_size": 4, "num_layers": 2, "dropout": 0.4},
    "one-hot, dropout": {"num_layers": 2, "dropout": 0.4},
    "tied": {"embedding": "learned", "tie_weights": True, "num_layers": 2, "dropout": 0.2},
}


def make(chosen: NetworkSettings, vocab_size: int = V) -> CompiledNetwork:
    """Return a network of weights so large that every term of the gradients counts."""
    model = build_network(chosen, vocab_size, 0)
    assert isinstance(model, CompiledNetwork)
    generator = torch.Generator().manual_seed(1)
    model.flat[:] = torch.randn(model.flat.shape, generator=generator) / chosen.num_hiddens**0.5
    return model


def exact(chosen: NetworkSettings, model: CompiledNetwork) -> TorchNetwork:
    """Return the network of the same weights in double precision, which is not compiled."""
    network = build_network(chosen.model_copy(update={"engine": "framework"}), model.vocab_size, 0)
    assert isinstance(network, TorchNetwork)
    network.double()
    network.load_weights(model.weight_copies())
    return network


def draw(model: CompiledNetwork, batch_size: int = B, num_steps: int = T, seed: int = 2) -> tuple[np.ndarray, ...]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, model.vocab_size, (batch_size, num_steps + 1), generator=generator)
    state = torch.randn(model.initial_state(batch_size).shape, generator=generator)
    return ids[:, :-1].numpy(), ids[:, 1:].numpy(), state.numpy()


def masks(batch_size: int) -> DropoutMask:
    """Return a function that draws the same masks in the same order."""
    rng = masks_rng(3)
    return lambda size, dropout: mask(rng, 1 - dropout, (batch_size, 1, size))


def in_double(state: np.ndarray, network: TorchNetwork) -> Tensor | list:
    """Return a state, (L, P, B, h), as :func:`exact` has it."""
    if isinstance(network, ScratchRNN):
        return torch.from_numpy(state[0, 0]).double()
    layers = torch.from_numpy(state).double()
    return [tuple(part[None] for part in layer) if len(layer) == 2 else layer for layer in layers]


def for_loops(state: Tensor | list) -> Tensor:
    if isinstance(state, Tensor):
        return state[None, None]
    return torch.stack([torch.cat(layer) if isinstance(layer, tuple) else layer for layer in state])


def require_exact_gradients(
    chosen: NetworkSettings, model: CompiledNetwork, num_threads: int, *minibatch: np.ndarray,
    keep: np.ndarray | None = None, close: float = 1e-5,
) -> None:  # fmt: skip
    """Compare with double precision."""
    inputs, targets, state = minibatch
    nll, after, gradient = compute(model, num_threads, *minibatch, masks(len(inputs)), keep)
    wanted_network = exact(chosen, model)
    wanted, wanted_after = wanted_network.compute_gradients(
        inputs, targets, in_double(state, wanted_network), masks(len(inputs)), keep
    )
    np.testing.assert_allclose(nll, wanted, rtol=close, atol=close)
    # With relu, all units may be zero.
    assert distance(after, for_loops(wanted_after)) < close or float(for_loops(wanted_after).norm()) < 1e-3
    expected = torch.cat([parameter.grad.flatten() for parameter in wanted_network.parameters()])
    # Single precision leaves more where terms cancel, and a unit of relu at the border of zero may fall on either side.
    close = 1e-3 if chosen.activation == "relu" else 10 * close
    assert distance(gradient, expected) < close or float(expected.norm()) < 1e-6


@st.composite
def networks(draw: st.DrawFn) -> NetworkSettings:
    cell, num_hiddens = draw(st.sampled_from([*CELLS, "scratch"])), draw(st.integers(1, 70))
    if cell == "scratch":
        return network_settings(cell, num_hiddens=num_hiddens, activation=draw(st.sampled_from(["tanh", "relu"])))
    options: dict[str, Any] = {"num_layers": draw(st.integers(1, 3)), "dropout": draw(st.sampled_from([0.0, 0.5]))}
    if embedding_size := draw(st.integers(0, 70)):
        options |= {"embedding": "learned", "embedding_size": embedding_size}
        if draw(st.booleans()):
            options |= {"embedding_size": None, "tie_weights": True}
    return network_settings(**CELLS[cell], num_hiddens=num_hiddens, **options)


@settings(deadline=None)
@given(networks(), st.integers(2, 70), st.integers(1, 19), st.integers(1, 20), st.integers(1, 3), st.booleans())
def test_gradients_of_any_shape_are_those_of_double_precision(
    chosen: NetworkSettings, vocab_size: int, batch_size: int, num_steps: int, num_threads: int, is_cut: bool
) -> None:
    model, keep = make(chosen, vocab_size), None
    if is_cut and chosen.model == "scratch":
        keep = mask(masks_rng(2), 0.5, (num_steps, batch_size))
    require_exact_gradients(chosen, model, num_threads, *draw(model, batch_size, num_steps), keep=keep)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("keep_probability", [1, 0.5])
def test_gradients_from_scratch_are_those_of_the_book_s_equations(activation: str, keep_probability: float) -> None:
    chosen = network_settings("scratch", num_hiddens=5, activation=activation)
    model = make(chosen)
    network, (inputs, targets, given) = exact(chosen, model), draw(model)
    state, keep = in_double(given, network), mask(masks_rng(3), keep_probability, (T, B))
    nll, _ = network.compute_gradients(inputs, targets, state, gradient_mask=keep if keep_probability < 1 else None)
    weights = {name: weight.clone().requires_grad_() for name, weight in network.named_weights().items()}
    logits, factors = [], torch.from_numpy(keep).double()[:, :, None]
    for one_hot, factor in zip(F.one_hot(torch.from_numpy(inputs.T), V).double(), factors, strict=True):
        # The value of the state passes whole, its gradient is scaled.
        sent = state * factor + (state * (1 - factor)).detach()
        state = getattr(torch, activation)(one_hot @ weights["W_xh"] + sent @ weights["W_hh"] + weights["b_h"])
        logits.append(state @ weights["W_hq"] + weights["b_q"])
    loss = F.cross_entropy(torch.stack(logits, 1).flatten(0, 1), torch.from_numpy(targets).flatten())
    torch.autograd.backward(loss)
    torch.testing.assert_close(nll.mean(), loss.detach(), rtol=1e-12, atol=0)
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.grad, weights[name].grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_hiddens", [256, 512])
def test_gradients_of_the_book_s_networks_agree_to_a_millionth(num_hiddens: int) -> None:
    chosen = network_settings("scratch", num_hiddens=num_hiddens)
    model = scratch_network(28, num_hiddens)
    require_exact_gradients(chosen, model, 2, *draw(model, 32, 35), close=1e-6)


FULL = {name: network_settings(**cell, num_hiddens=37, **FORMS["learned, dropout"]) for name, cell in CELLS.items()}
FULL["scratch"] = network_settings("scratch", num_hiddens=37)


@pytest.mark.parametrize("kind", FULL)
def test_any_number_of_threads_gives_the_same_bits(kind: str) -> None:
    layers = {} if kind == "scratch" else {"num_layers": 3}
    model = make(FULL[kind].model_copy(update={"num_hiddens": 70, **layers}))
    minibatch = draw(model, 19, 20)
    alone = compute(model, 1, *minibatch, masks(19))
    read_alone = model.token_nll(*minibatch)
    for num_threads in (2, 3):
        together = compute(model, num_threads, *minibatch, masks(19))
        assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))
        model.num_threads = num_threads
        read_together = model.token_nll(*minibatch)
        assert all(np.array_equal(one, other) for one, other in zip(read_alone, read_together, strict=True))


@pytest.mark.parametrize("batch_size", [1, 11, 150])
@pytest.mark.parametrize("kind", FULL)
def test_scoring_step_by_step_is_scoring_at_once(kind: str, batch_size: int) -> None:
    model = make(FULL[kind])
    inputs, targets, state = draw(model, batch_size, 150 if batch_size == 1 else 7)
    model.num_threads = 2
    logits, after = model.logits(inputs, state)
    network = exact(FULL[kind], model)
    wanted, wanted_after = network.logits(inputs, in_double(state, network))
    assert distance(logits, torch.from_numpy(wanted)) < 1e-5
    assert distance(after, for_loops(wanted_after)) < 1e-5
    step = model.step_fn(state)
    for t in range(inputs.shape[1]):
        assert np.array_equal(step(inputs[:, t]), logits[:, t])
    first, between = model.logits(inputs[:, :3], state)
    second, last = model.logits(inputs[:, 3:], between)
    assert np.array_equal(np.concatenate([first, second], 1), logits)
    assert np.array_equal(last, after)
    assert np.array_equal(model.advance_state(inputs, state), after)
    nll, trained = model.compute_gradients(inputs, targets, state)
    assert np.array_equal(trained, after)
    losses = -torch.from_numpy(logits).double().log_softmax(2).numpy()
    np.testing.assert_allclose(nll, np.take_along_axis(losses, targets[:, :, None], 2)[:, :, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_prefixes", [1, 3, 37])
@pytest.mark.parametrize("kind", FULL)
def test_greedy_texts_take_the_likeliest_token_at_each_step(kind: str, num_prefixes: int) -> None:
    model = make(FULL[kind], 11)
    prefixes = np.array([[1 + n % 10, 3, 1 + n % 7] for n in range(num_prefixes)])
    texts = continue_prefixes(model, prefixes, 20)
    logits, _ = model.logits(np.hstack([prefixes, texts]), model.initial_state(num_prefixes))
    assert np.array_equal(texts, logits[:, 2:-1, 1:].argmax(2) + 1)


@pytest.mark.parametrize("form", FORMS.values())
@pytest.mark.parametrize("model", ["rnn", "lstm"])
def test_engines_draw_equal_weights_and_read_stored_ones(model: str, form: dict[str, object], tmp_path: Path) -> None:
    chosen, ids = network_settings(model, **form), np.array([[1, 2, 3]])
    other = chosen.model_copy(update={"engine": "framework"})
    drawn, compiled = build_network(other, V, 5), build_network(chosen, V, 5)
    assert (drawn.engine, compiled.engine) == ("framework", "compiled")
    assert equal(compiled.weight_copies(), drawn.weight_copies())
    assert isinstance(build_network(chosen, V, 5, "meta"), FrameworkRNN)
    for settings_of_engine in (other, chosen):
        save_network(tmp_path, "x", settings_of_engine, (V, ""), drawn.weight_copies())
        loaded = open_network(tmp_path, "x", (V, ""), "cpu", 1)
        logits, _ = loaded.logits(ids, loaded.initial_state(1))
        np.testing.assert_allclose(logits, drawn.logits(ids, drawn.initial_state(1))[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["scratch", "lstm"])
@pytest.mark.parametrize("wrong", [V, -1])
def test_a_token_outside_the_vocabulary_is_refused(kind: str, wrong: int) -> None:
    model = make(FULL[kind])
    inputs, targets, state = draw(model)
    bad = inputs.copy()
    bad[1, 2] = wrong
    for read in (
        lambda: model.compute_gradients(bad, targets, state),
        lambda: model.compute_gradients(inputs, bad, state),
        lambda: model.logits(bad, state),
    ):
        with pytest.raises(IndexError, match="outside the vocabulary"):
            read()


@pytest.mark.parametrize("cell", CELLS)
def test_a_weight_that_is_not_finite_gives_a_loss_that_is_not(cell: str) -> None:
    made = make(network_settings(**CELLS[cell]), 7)
    for name, bad in [("output.bias", np.inf), *((name, np.nan) for name in made.named_weights())]:
        model = made.copy()
        model.named_weights()[name][-1] = bad
        nll, _ = model.compute_gradients(*draw(model, 2, 3))
        assert not np.isfinite(nll.sum()), name


def test_weights_that_change_are_seen_and_a_copy_learns_by_itself() -> None:
    model = make(FULL["scratch"])
    inputs, targets, state = draw(model)
    model.num_threads = 2
    with model.thread_team():
        before, old = (model.logits(inputs, state)[0], model.compute_gradients(inputs, targets, state)[0])
        gradient, twin = model.gradient.copy(), model.copy()
        twin.flat *= 3
        assert not np.array_equal(twin.logits(inputs, state)[0], before)
        assert not np.array_equal(twin.compute_gradients(inputs, targets, state)[0], old)
        assert np.array_equal(model.gradient, gradient)
        model.flat *= 3
        assert np.array_equal(model.logits(inputs, state)[0], twin.logits(inputs, state)[0])


def test_a_state_that_was_returned_is_not_overwritten() -> None:
    model = make(FULL["scratch"])
    inputs, targets, state = draw(model)
    kept, given = state.copy(), model.compute_gradients(inputs, targets, state)[1]
    first = given.copy()
    model.compute_gradients(targets, inputs, given)
    assert np.array_equal(given, first)
    assert np.array_equal(state, kept)


_BITS = """
import hashlib, numpy as np
from compiled_networks import network_settings
from seqlm.networks.building import build_network
from seqlm.networks.compiled.tiles import WIDTH
from seqlm.networks.initial import mask, normal
print(WIDTH)
layers = {"num_layers": 2, "embedding": "learned", "embedding_size": 20, "dropout": 0.4}
for kind in ("scratch", "rnn", "lstm", "gru"):
    model = build_network(network_settings(kind, num_hiddens=150, **({} if kind == "scratch" else layers)), 28, 0)
    rng = np.random.default_rng(0)
    model.flat[:] = normal(rng, 1 / 12, model.flat.shape)
    ids = rng.integers(0, 28, (20, 35))
    draw_mask = lambda size, dropout: mask(rng, 1 - dropout, (20, 1, size))
    nll, _ = model.compute_gradients(ids, np.roll(ids, 1, 1), model.initial_state(20), draw_mask)
    logits, _ = model.logits(ids, model.initial_state(20))
    found = (model.gradient, nll, logits)
    print(hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest())
"""


@pytest.mark.slow
def test_other_vector_instructions_give_the_same_bits() -> None:
    registers = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma", "ATEN_CPU_CAPABILITY": "avx2"}
    wide, narrow = (succeeded(run_python(_BITS, **chosen)).split() for chosen in ({}, registers))
    assert narrow == ["16", *wide[1:]]  # the width of a panel shows that the narrow ones were used


_SCORE = """
import numpy as np
from compiled_networks import network_settings
from seqlm.networks.building import build_network
from seqlm.networks.network import stream_nll
network = build_network(network_settings("scratch", num_hiddens=128), 28, 0)
print(network.engine, stream_nll(network, np.arange(100) % 28).sum())
"""


def test_a_processor_without_fma_scores_with_pytorch() -> None:
    old = {"NUMBA_CPU_NAME": "sandybridge", "NUMBA_CPU_FEATURES": "+avx,-avx2,-fma,-avx512f"}
    engine, total = succeeded(run_python(_SCORE, **old)).split()
    assert engine == "framework"
    # Small weights: hardly more or less than log 28 for each of 99 tokens.
    assert float(total) == pytest.approx(99 * np.log(28), rel=1e-3)
