"""Section 8.7: its equations against automatic differentiation, and what the stage measures."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import equations
from compiled_networks import scratch_network
from default_params import PARAMS_FILE
from seqlm.core.errors import DataError
from seqlm.core.settings import load
from seqlm.networks.building import build_network
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.initial import masks_rng
from seqlm.pipeline.gradients import study
from seqlm.pipeline.gradients.settings import GradientsParams
from seqlm.pipeline.gradients.study import (
    Task,
    Truncation,
    draw_gradients,
    draw_windows,
    gradient_error,
    gradient_norms,
    keep_frequent,
    study_gradients,
    train_briefly,
)
from small_training import prepare_stage
from smoke import change_params
from stages_by_hand import RunStage, refused, succeeded

RNG = np.random.default_rng(0)
T, D, H, Q = 7, 3, 4, 2
MODEL = equations.LinearRNN(RNG.normal(size=(H, D)), RNG.normal(size=(H, H)), RNG.normal(size=(Q, H)))
STRATEGIES = [Truncation("regular", 1), Truncation("regular", 4), Truncation("randomized", 4)]
INPUTS, TARGETS = RNG.normal(size=(T, D)), RNG.normal(size=(T, Q))


def task(ids: np.ndarray, vocab_size: int, **settings: object) -> Task:
    """Return a study of a text with these settings, in one process."""
    params = load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=settings)
    return Task(params, ids, ids, vocab_size, 0, 1)


def by_autograd() -> tuple[dict[str, torch.Tensor], np.ndarray, list[torch.Tensor]]:
    """Return gradients of the weights, dL/do_t, and dL/dh_t for the squared error."""
    weights = {name: torch.tensor(getattr(MODEL, name), requires_grad=True) for name in ("w_hx", "w_hh", "w_qh")}
    hidden, states, outputs = torch.zeros(H, dtype=torch.float64), [], []
    for x in torch.tensor(INPUTS):
        hidden = weights["w_hx"] @ x + weights["w_hh"] @ hidden
        hidden.retain_grad()
        states.append(hidden)
        outputs.append(weights["w_qh"] @ hidden)
        outputs[-1].retain_grad()
    loss = sum((output - target).pow(2).sum() for output, target in zip(outputs, torch.tensor(TARGETS), strict=True))
    (loss / T).backward()
    by_output = np.array([output.grad.numpy() for output in outputs])
    return (
        {name: weight.grad for name, weight in weights.items() if weight.grad is not None},
        by_output,
        [state.grad for state in states],
    )


def test_the_equations_equal_automatic_differentiation() -> None:
    expected, by_output, by_state = by_autograd()
    found = equations.linear_gradients(MODEL, INPUTS, by_output)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient.numpy(), rtol=1e-10)
    for t in range(1, T + 1):
        np.testing.assert_allclose(equations.state_gradient(MODEL, by_output, t), by_state[t - 1].numpy(), rtol=1e-10)
    # (8.7.14): the recursion from the next step.
    for t in range(1, T):
        recursive = MODEL.w_hh.T @ equations.state_gradient(MODEL, by_output, t + 1) + MODEL.w_qh.T @ by_output[t - 1]
        np.testing.assert_allclose(equations.state_gradient(MODEL, by_output, t), recursive, rtol=1e-10)


def test_the_full_sum_is_the_recursion() -> None:
    local, factors = RNG.normal(size=9), RNG.normal(size=9)
    derivative = 0.0
    for a, b in zip(local, factors, strict=True):
        derivative = a + b * derivative  # (8.7.4)
    assert equations.full_derivative(local, factors) == pytest.approx(derivative, rel=1e-12)
    assert equations.truncated_derivative(local, factors, 0) == local[-1]
    assert equations.truncated_derivative(local, factors, 1) == pytest.approx(local[-1] + factors[-1] * local[-2])


@pytest.mark.parametrize("probability", [0.5, 0.8, 1.0])
def test_randomized_truncation_is_unbiased(probability: float) -> None:
    local, factors = RNG.normal(size=12), RNG.uniform(0.3, 0.6, size=12)
    rng = np.random.default_rng(1)
    draws = np.array(
        [equations.randomized_derivative(local, factors, lambda _: probability, rng) for _ in range(20_000)]
    )
    error = draws.std() / len(draws) ** 0.5
    assert abs(draws.mean() - equations.full_derivative(local, factors)) <= 4 * error + 1e-12


LAYERS = {"relu": partial(torch.nn.RNN, nonlinearity="relu"), "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


@pytest.mark.parametrize("model", ["scratch", "relu", "gru", "lstm"])
def test_the_reach_is_the_gradient_of_a_layer_that_starts_from_an_earlier_state(model: str) -> None:
    network = build_network(study.network_settings(*study.MODELS[model], 8, 8), 3, 0)
    factor = np.float32(60 if model == "scratch" else 2)
    network.load_weights({name: factor * weight for name, weight in network.weight_copies().items()})
    arrays = network.weight_copies().items()
    weights = {name.removeprefix("layers.0."): torch.from_numpy(weight).double() for name, weight in arrays}
    if model == "scratch":
        weights = {"weight_ih_l0": weights["W_xh"].T, "weight_hh_l0": weights["W_hh"].T, "bias_ih_l0": weights["b_h"],
                   "output.weight": weights["W_hq"].T, "output.bias": weights["b_q"]}  # fmt: skip
        weights["bias_hh_l0"] = torch.zeros(8)
    layer = LAYERS.get(model, torch.nn.RNN)(3, 8, batch_first=True).double()
    layer.load_state_dict({name: weight for name, weight in weights.items() if not name.startswith("output")})
    ids = np.random.default_rng(1).integers(0, 3, (5, 8))
    one_hot, targets = (torch.eye(3, dtype=torch.float64)[torch.tensor(ids[:, :-1])], torch.tensor(ids[:, -1]))
    for k, norm in enumerate(gradient_norms(model, network, ids)):
        _, state = layer(one_hot[:, : 7 - k])
        hidden, memory = state if model == "lstm" else (state, None)
        hidden = hidden.detach().requires_grad_()
        start = hidden if memory is None else (hidden, memory)
        states = layer(one_hot[:, 7 - k :], start)[0][:, -1] if k else hidden[0]
        logits = states @ weights["output.weight"].T + weights["output.bias"]
        torch.nn.functional.cross_entropy(logits, targets, reduction="sum").backward()
        assert norm == pytest.approx(hidden.grad[0].norm(dim=1).mean().item(), rel=1e-10)


def test_randomized_truncation_nears_the_full_gradient_and_regular_truncation_does_not() -> None:
    model, rng = scratch_network(4, 6, factor=40), np.random.default_rng(0)
    window = np.random.default_rng(0).integers(0, 4, (3, 9))
    full = draw_gradients(model, window, Truncation("full", 8), 1, rng)[0]

    def error(strategy: str, length: int, num_draws: int = 4000) -> tuple[float, float]:
        draws = draw_gradients(model, window, Truncation(strategy, length), num_draws, rng)
        return gradient_error(draws, full)

    # Length 1 cuts every step, so no draw differs from another.
    assert error("regular", 1, 10)[1] == pytest.approx(0, abs=1e-6)
    (regular, regular_spread), (randomized, spread) = error("regular", 4), error("randomized", 4)
    assert randomized < 4 * spread / 4000**0.5
    assert regular > 4 * regular_spread / 4000**0.5


def test_cuts_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert Truncation("full", 7).draw(7, 2, rng) is None
    keep = Truncation("regular", 3).draw(7, 2, rng)
    assert keep is not None
    assert (np.diff(np.flatnonzero(keep[:, 0] == 0)) == 3).all()
    assert (keep[:, 0] == keep[:, 1]).all()
    # Each step continues with probability 3/4: the factor is 0 or 4/3, and its mean is 1.
    keep = Truncation("randomized", 4).draw(1000, 50, rng)
    assert keep is not None
    assert np.unique(keep).tolist() == pytest.approx([0, 4 / 3])
    assert float(keep.mean()) == pytest.approx(1, abs=0.02)
    # There is no randomized truncation of length 1.
    assert study.truncations([1, 4]) == STRATEGIES


def test_equal_seeds_train_on_equal_minibatches_whatever_the_truncation() -> None:
    ids = np.tile([0, 1, 2, 1], 200)
    small = task(ids, 3, num_minibatches=20, num_steps=8, num_hiddens=8)
    first, again = (study._perplexity_after(small, (Truncation("full", 8), 0)) for _ in range(2))
    assert first == again
    # A minibatch is 32 windows; the first gradient of the output layer is that of the same weights on the same windows.
    first_steps, last_steps = [], []
    for length in (1, 8):
        network = scratch_network(3, 8)
        draw = partial(Truncation("regular", length).draw, 8, 32, np.random.default_rng(0))
        weights = [network.weight_copies()["b_q"] for _ in train_briefly(network, ids, small.params, 0, draw)]
        first_steps.append(weights[1].tolist())
        last_steps.append(weights[-1].tolist())
    assert first_steps[0] == first_steps[1]
    assert last_steps[0] != last_steps[1]


def test_the_rate_falls_to_zero_and_training_ends_at_a_gradient_that_is_not_finite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []
    monkeypatch.setattr(CompiledNetwork, "step", lambda _, lr: seen.append(lr))
    small = task(np.tile([0, 1, 2, 1], 20), 3, num_minibatches=4, num_steps=8, num_hiddens=4)
    assert list(train_briefly(scratch_network(3, 4), small.train_ids, small.params, 0)) == [0, 1, 2, 3, 4]
    assert seen == pytest.approx([0.01, 0.0075, 0.005, 0.0025])
    norms = iter([1.0, np.inf])
    monkeypatch.setattr(CompiledNetwork, "clip_gradients", lambda *_: next(norms))
    assert np.isnan(study._perplexity_after(small, (Truncation("full", 8), 0)))
    assert len(seen) == 5


def test_gradients_are_clipped_and_recurrent_weights_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    small = task(np.tile([0, 1, 2, 1], 20), 3, num_minibatches=1, num_steps=8, num_hiddens=16)
    network, norms = scratch_network(3, 16, factor=300), []
    monkeypatch.setattr(CompiledNetwork, "step", lambda *_: norms.append(np.linalg.norm(network.gradients[0])))
    list(train_briefly(network, small.train_ids, small.params, 0))
    assert norms == pytest.approx([1], rel=1e-5)
    network = scratch_network(3, 16)
    w_hh = network.named_weights()["W_hh"]
    before = w_hh.copy()
    assert 0 < gradient_norms("scratch", network, np.array([[0, 1, 2, 1, 0]]))[3] < 1e-4
    study.scale_recurrence(network)
    torch.testing.assert_close(w_hh, 25 * before)  # 1 / (0.01 * 16 ** 0.5)


def test_bias_and_spread_by_hand() -> None:
    # The mean of the draws is (2, 1), and the norm of the full gradient 4.
    errors = gradient_error(np.array([[1.0, 1], [3, -1], [2, 3]]), np.array([0.0, 4]))
    assert errors == pytest.approx((13**0.5 / 4, (10 / 3) ** 0.5 / 4))


def test_a_text_without_one_window_is_refused() -> None:
    # A window of 5 steps holds 6 tokens: inputs and the last target.
    assert draw_windows(np.arange(6), 1, 5, np.random.default_rng(0)).tolist() == [[0, 1, 2, 3, 4, 5]]
    with pytest.raises(DataError, match=r"train has 5 tokens: gradients\.num_steps must be at most 4"):
        draw_windows(np.arange(5), 1, 5, np.random.default_rng(0))
    with pytest.raises(DataError, match=r"val has too few tokens \(1\): perplexity needs at least 2"):
        small_study(1, num_val=1)


def test_rare_tokens_count_as_unknown() -> None:
    assert keep_frequent(np.array([0, 3, 5, 2, 4], np.uint8), 4).tolist() == [0, 3, 0, 2, 0]


@pytest.mark.parametrize("name", ["lengths", "trained_lengths"])
def test_lengths_beyond_the_windows_end_with_code_2(name: str, run_stage: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {f"gradients.{name}": [1, 49]})
    refused(run_stage("gradients"), 2, f"{name} must not exceed num_steps = 48")


SMALL = {
    "num_hiddens": 8, "num_steps": 8, "num_minibatches": 4, "lengths": [1, 4], "num_draws": 3,
    "trained_lengths": [1, 4], "num_trainings": 2,
}  # fmt: skip


def small_study(num_threads: int, num_val: int = 50) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    params = load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "_MAX_VOCAB", 6)
        patch.setattr(study, "_MAX_VAL_TOKENS", 50)
        ids = np.random.default_rng(0).integers(0, 9, 500).astype(np.uint8)
        return study_gradients(params, ids, ids[:num_val], 9, 0, num_threads)


@pytest.fixture(scope="module")
def small() -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    return small_study(1)


# What the study sees: its text with rare tokens replaced, the windows of its seed, and its short training.
IDS = keep_frequent(np.random.default_rng(0).integers(0, 9, 500), 6)
WINDOWS = draw_windows(IDS, 64, 8, np.random.default_rng(0))
SMALL_TASK = replace(task(IDS, 6, **SMALL), val_ids=IDS[:50])


def columns_of(table: pd.DataFrame, **values: object) -> dict[str, list[Any]]:
    """Return the other columns of the rows that have these values."""
    for name, value in values.items():
        table = table[table[name] == value].drop(columns=name)
    return table.to_dict("list")


@pytest.mark.parametrize("model", ["scratch", "relu", "gru", "lstm"])
def test_reach_and_radius_are_those_of_a_model_before_and_after_its_training(model: str, small: Any) -> None:
    tables, summary = small
    network = build_network(study.network_settings(*study.MODELS[model], 8, 8), 6, 0)
    for moment, minibatch in (("initial", 0), ("trained", 4)):
        norms = gradient_norms(model, network, WINDOWS)
        expected = {"k": list(range(8)), "norm": (norms / norms[0]).tolist()}
        assert columns_of(tables["reach"], model=model, moment=moment) == expected
        if model in ("scratch", "relu"):
            weights = network.named_weights()
            matrix = weights["W_hh" if model == "scratch" else "layers.0.weight_hh_l0"].astype(np.float64)
            radius = abs(np.linalg.eigvals(matrix)).max()
            assert summary["spectral_radius"][model][moment] == radius
            assert columns_of(tables["radius"], model=model, minibatch=minibatch) == {"spectral_radius": [radius]}
        if moment == "initial":
            list(train_briefly(network, IDS, SMALL_TASK.params, 0))
    assert list(summary["spectral_radius"]) == ["scratch", "relu"]


@pytest.mark.parametrize("cut", STRATEGIES)
def test_truncations_are_measured_on_an_untrained_network_whose_states_last(cut: Truncation, small: Any) -> None:
    tables, _ = small
    rng = masks_rng(0)
    model = study.small_network(SMALL_TASK, "scratch", 0)
    study.scale_recurrence(model)
    full = draw_gradients(model, WINDOWS, Truncation("full", 8), 1, rng)[0]
    bias, spread = gradient_error(draw_gradients(model, WINDOWS, cut, 3, rng), full)
    expected = {"bias": [bias], "spread": [spread], "standard_error": [spread / 3**0.5]}
    assert columns_of(tables["truncation"], strategy=cut.strategy, length=cut.length) == expected


@pytest.mark.parametrize("cut", [*STRATEGIES, Truncation("full", 8)])
def test_perplexities_after_training_with_a_truncation(cut: Truncation, small: Any) -> None:
    tables, _ = small
    perplexities = [study._perplexity_after(SMALL_TASK, (cut, seed)) for seed in (0, 1)]
    found = columns_of(tables["trained"], strategy=cut.strategy, length=cut.length)
    assert found == {"seed": [0, 1], "val_perplexity": perplexities}
    assert study._perplexity_after(replace(SMALL_TASK, val_ids=IDS[50:100]), (cut, 0)) != perplexities[0]


def test_the_study_has_a_row_for_everything_and_repeats(small: Any) -> None:
    tables, summary = small
    assert list(tables["reach"]["model"].unique()) == ["scratch", "relu", "gru", "lstm"]
    # Four models at two moments; three truncations and none, with two seeds; two models at four moments.
    rows = {"reach": 4 * 2 * 8, "trained": 4 * 2}
    assert {name: len(tables[name]) for name in rows} == rows
    assert str(list(tables["radius"]["minibatch"])) == str([0, 1, 2, 4] * 2)  # whole numbers
    assert tables["trained"]["val_perplexity"].between(1, 12).all()
    # Again, on two threads, and with more of val than is read.
    again, same_summary = small_study(2, num_val=80)
    assert same_summary == summary
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, again[name], check_exact=True)


def test_the_stage_prints_and_writes_what_it_finds(run_stage: RunStage, tmp_path: Path) -> None:
    layout = prepare_stage(tmp_path, "the sea came in and the sea went out again\n" * 20)
    settings = SMALL | {"num_minibatches": 1, "num_trainings": 1}
    change_params(layout.params, {f"gradients.{name}": value for name, value in settings.items()})
    assert re.search(r": scratch \d\.\d{3}, \d\.\d{3}; relu", succeeded(run_stage("gradients")))
    assert len(list(layout.reports("gradients").iterdir())) == 5
