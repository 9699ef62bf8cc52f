"""Section 8.7: its equations against automatic differentiation, and what the stage measures."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from conftest import RunStage
from seqlm.errors import DataError
from seqlm.gradients.equations import (
    LinearRNN,
    eigenvector_alignment,
    full_derivative,
    linear_gradients,
    randomized_derivative,
    state_gradient,
    truncated_derivative,
)
from seqlm.gradients.reach import Probe, draw_windows, gradient_reach, mutual_information, truncation_errors
from seqlm.rnn.scratch import ScratchRNN

RNG = np.random.default_rng(0)
T, D, H, Q = 7, 3, 4, 2
MODEL = LinearRNN(RNG.normal(size=(H, D)), RNG.normal(size=(H, H)), RNG.normal(size=(Q, H)))
INPUTS, TARGETS = RNG.normal(size=(T, D)), RNG.normal(size=(T, Q))


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
    return {name: weight.grad for name, weight in weights.items()}, by_output, [state.grad for state in states]


def test_the_equations_equal_automatic_differentiation() -> None:
    expected, by_output, by_state = by_autograd()
    found = linear_gradients(MODEL, INPUTS, by_output)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient.numpy(), rtol=1e-10)
    for t in range(1, T + 1):
        np.testing.assert_allclose(state_gradient(MODEL, by_output, t), by_state[t - 1].numpy(), rtol=1e-10)
    # (8.7.14): the recursion from the step behind.
    for t in range(1, T):
        behind = MODEL.w_hh.T @ state_gradient(MODEL, by_output, t + 1) + MODEL.w_qh.T @ by_output[t - 1]
        np.testing.assert_allclose(state_gradient(MODEL, by_output, t), behind, rtol=1e-10)


def test_the_full_sum_is_the_recursion() -> None:
    local, factors = RNG.normal(size=9), RNG.normal(size=9)
    derivative = 0.0
    for a, b in zip(local, factors, strict=True):
        derivative = a + b * derivative  # (8.7.4)
    assert full_derivative(local, factors) == pytest.approx(derivative, rel=1e-12)
    assert truncated_derivative(local, factors, 0) == local[-1]
    assert truncated_derivative(local, factors, 1) == pytest.approx(local[-1] + factors[-1] * local[-2])


@pytest.mark.parametrize("probability", [0.5, 0.8, 1.0])
def test_randomized_truncation_is_unbiased(probability: float) -> None:
    local, factors = RNG.normal(size=12), RNG.uniform(0.3, 0.6, size=12)
    rng = np.random.default_rng(1)
    draws = np.array([randomized_derivative(local, factors, lambda _: probability, rng) for _ in range(20_000)])
    error = draws.std() / len(draws) ** 0.5
    assert abs(draws.mean() - full_derivative(local, factors)) <= 4 * error + 1e-12


def test_the_reach_of_a_linear_network_follows_its_spectrum() -> None:
    probe = Probe("relu", 3, 4, 0)
    with torch.no_grad():
        # Inputs keep every unit positive, so relu is the identity, and W_hh is 0.5 times a rotation.
        probe.cell.weight_ih.fill_(1.0)
        probe.cell.weight_hh.copy_(0.5 * torch.eye(4)[[1, 2, 3, 0]])
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (5, 11)))
    norms = gradient_reach(probe, ids)
    np.testing.assert_allclose(norms / norms[0], 0.5 ** np.arange(10), rtol=1e-5)


def test_truncation_is_exact_when_nothing_is_cut_and_random_cuts_are_unbiased() -> None:
    model = ScratchRNN(4, 6, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.flat.mul_(40)
    window = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (3, 9)))
    rows = {(row[0], row[1]): row[2:] for row in truncation_errors(model, window, [1, 4], 4000, 0)}
    # Length 1 cuts every step, so no draw differs from another; at random it would need a chance of 0 to go on.
    assert ("randomized", 1) not in rows
    assert rows["regular", 1][1] == pytest.approx(0, abs=1e-6)
    bias, spread, error = rows["randomized", 4]
    assert bias < 4 * error < spread
    assert rows["regular", 4][0] > 4 * rows["regular", 4][2]


def test_a_text_without_one_window_is_refused() -> None:
    # A window of 5 steps holds 6 tokens: inputs and the last target.
    assert draw_windows(np.arange(6), 1, 5, np.random.default_rng(0)).tolist() == [[0, 1, 2, 3, 4, 5]]
    with pytest.raises(DataError, match=r"train has 5 tokens: gradients\.num_steps must be at most 4"):
        draw_windows(np.arange(5), 1, 5, np.random.default_rng(0))


def test_mutual_information_by_hand() -> None:
    # In 0 1 0 1 ... each token fixes every other: one bit, at any distance.
    assert mutual_information(np.tile([0, 1], 5000), [1, 2, 7], 2) == pytest.approx([1, 1, 1], abs=1e-3)
    draws = np.random.default_rng(0).integers(0, 5, 50_000)
    assert mutual_information(draws, [1, 3], 5) == pytest.approx([0, 0], abs=1e-3)


def test_powers_align_with_the_leading_eigenvector() -> None:
    # Eigenvalues 2 and 1, start at 45 degrees: the cosine after k powers is 2^k / sqrt(4^k + 1).
    found = eigenvector_alignment(np.diag([2.0, 1.0]), np.array([1.0, 1.0]), 5)
    np.testing.assert_allclose(found, [2**k / (4**k + 1) ** 0.5 for k in range(6)])


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("lengths: [1, 2, 4, 8, 16, 32]", "lengths: [1, 64]", "lengths must not exceed num_steps = 48"),
        ("num_draws: 100 ", "num_draws: 0 ", "gradients.num_draws = 0"),
        ("keep_probability: 0.9", "keep_probability: 0", None),
    ],
)
def test_bad_settings_end_with_code_2(
    old: str, new: str, complaint: str | None, run_stage: RunStage, tmp_path: Path
) -> None:
    path = tmp_path / "params.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    result = run_stage("gradients" if complaint else "configure")
    assert result.returncode == 2
    assert (complaint or "train.keep_probability = 0") in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_committed_study_says_what_the_page_says(root: Path) -> None:
    folder = root / "reports/gradients"
    reach = pd.read_csv(folder / "reach.csv")
    assert set(reach["model"]) == {"tanh", "relu", "gru", "lstm"}
    far = reach[(reach["moment"] == "initial") & (reach["k"] == reach["k"].max())]
    assert (far["norm"] < 1e-3).all()  # at the start gradients vanish
    truncation = pd.read_csv(folder / "truncation.csv")
    regular = truncation[truncation["strategy"] == "regular"]["bias"].to_numpy()
    assert (np.diff(regular) < 0).all()  # longer windows are less wrong
    assert json.loads((folder / "metrics.json").read_text())["information_at_1"] > 0
