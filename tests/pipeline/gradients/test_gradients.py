"""Section 8.7: its equations against automatic differentiation, and what the stage measures."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
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
from seqlm.networks.network import Network
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
STRATEGIES = [Truncation("regular", 1), Truncation("regular", 4), Truncation("randomized", 4)]


def task(ids: np.ndarray, vocab_size: int, **settings: object) -> Task:
    """Return a study of a text with these settings, in one process."""
    params = load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=settings)
    return Task(params, ids, ids, vocab_size, 0, 1)


def test_the_equations_that_the_guide_shows_give_the_gradients_of_pytorch() -> None:
    sizes = {"w_hx": (4, 3), "w_hh": (4, 4), "w_qh": (2, 4)}
    weights = {name: torch.tensor(RNG.normal(size=size), requires_grad=True) for name, size in sizes.items()}
    inputs, targets = (torch.tensor(RNG.normal(size=(7, size))) for size in (3, 2))
    hidden, outputs = torch.zeros(4, dtype=torch.float64), []
    for x in inputs:
        hidden = weights["w_hx"] @ x + weights["w_hh"] @ hidden
        outputs.append(weights["w_qh"] @ hidden)
        outputs[-1].retain_grad()
    ((torch.stack(outputs) - targets).pow(2).sum() / 7).backward()
    model = equations.LinearRNN(**{name: weight.detach().numpy() for name, weight in weights.items()})
    by_output = np.array([output.grad.numpy() for output in outputs])
    for name, found in equations.linear_gradients(model, inputs.numpy(), by_output).items():
        np.testing.assert_allclose(found, weights[name].grad.numpy(), rtol=1e-10)


def test_truncated_sums_by_the_recursion() -> None:
    local, factors = RNG.normal(size=5), RNG.normal(size=5)
    derivative, p = 0.0, 0.8
    for a, b in zip(local, factors, strict=True):
        derivative = a + b * derivative  # (8.7.4)
    assert equations.truncated_derivative(local, factors, 5) == pytest.approx(derivative, rel=1e-12)
    assert equations.truncated_derivative(local, factors, 1) == pytest.approx(local[-1] + factors[-1] * local[-2])

    def stopped_after(num_terms: int) -> float:
        numbers = iter([0.0] * (num_terms - 1) + [1.0])  # 0 continues the recurrence, and 1 stops it
        return equations.randomized_derivative(
            local, factors, lambda _: p, SimpleNamespace(random=lambda: next(numbers))
        )

    # Stopping after n of 5 terms has probability p^(n - 1) (1 - p), and 5 terms are left in all other cases.
    shares = [p**n * (1 - p) for n in range(4)] + [p**4]
    assert np.dot(shares, [stopped_after(n) for n in range(1, 6)]) == pytest.approx(derivative, rel=1e-12)


LAYERS = {"relu": partial(torch.nn.RNN, nonlinearity="relu"), "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


class InPyTorch:
    """A network of one layer as PyTorch's own modules in double precision."""

    def __init__(self, model: str, network: Network) -> None:
        arrays = {name: torch.from_numpy(array).double() for name, array in network.weight_copies().items()}
        if model == "scratch":
            arrays = {
                "weight_ih_l0": arrays["W_xh"].T, "weight_hh_l0": arrays["W_hh"].T, "bias_ih_l0": arrays["b_h"],
                "bias_hh_l0": torch.zeros_like(arrays["b_h"]),
                "output.weight": arrays["W_hq"].T, "output.bias": arrays["b_q"],
            }  # fmt: skip
        self.vocab_size, num_hiddens = arrays["output.weight"].shape
        self.layer = LAYERS.get(model, torch.nn.RNN)(self.vocab_size, num_hiddens, batch_first=True).double()
        self.output = torch.nn.Linear(num_hiddens, self.vocab_size).double()
        for module, prefix in ((self.layer, "layers.0."), (self.output, "output.")):
            module.load_state_dict({name: arrays.get(prefix + name, arrays.get(name)) for name in module.state_dict()})
        if model == "scratch":
            self.layer.bias_hh_l0.requires_grad_(False)
        self.weights = [one for one in (*self.layer.parameters(), *self.output.parameters()) if one.requires_grad]

    def one_hot(self, ids: np.ndarray) -> torch.Tensor:
        return torch.eye(self.vocab_size, dtype=torch.float64)[torch.tensor(ids)]

    def loss(self, windows: np.ndarray, *, keeps_state: bool = True) -> torch.Tensor:
        """Return the mean loss of a token, with the gradient through states or without it."""
        inputs, targets = self.one_hot(windows[:, :-1]), torch.tensor(windows[:, 1:])
        state, states = None, []
        for step in range(inputs.shape[1]):
            hidden, state = self.layer(inputs[:, step : step + 1], state)
            states.append(hidden)
            state = state if keeps_state else state.detach()
        return torch.nn.functional.cross_entropy(self.output(torch.cat(states, 1)).flatten(0, 1), targets.flatten())

    def gradient(self, windows: np.ndarray, *, keeps_state: bool = True) -> torch.Tensor:
        gradients = torch.autograd.grad(self.loss(windows, keeps_state=keeps_state), self.weights)
        return torch.cat([gradient.flatten() for gradient in gradients])

    def reach(self, ids: np.ndarray) -> list[float]:
        """Return the norms of the gradients of the last loss by each state, which the layer then starts from."""
        one_hot, targets, found = self.one_hot(ids[:, :-1]), torch.tensor(ids[:, -1]), []
        for k in range(ids.shape[1] - 1):
            _, state = self.layer(one_hot[:, : ids.shape[1] - 1 - k])
            hidden, memory = state if isinstance(state, tuple) else (state, None)
            hidden = hidden.detach().requires_grad_()
            start = hidden if memory is None else (hidden, memory)
            last = self.layer(one_hot[:, ids.shape[1] - 1 - k :], start)[0][:, -1] if k else hidden[0]
            torch.nn.functional.cross_entropy(self.output(last), targets, reduction="sum").backward()
            found.append(hidden.grad[0].norm(dim=1).mean().item())
        return found

    def radius(self) -> float:
        """Return the spectral radius of the first square matrix that carries the state."""
        matrix = self.layer.weight_hh_l0.detach().numpy()
        return float(np.abs(np.linalg.eigvals(matrix[: matrix.shape[1]])).max())


def untrained(model: str, vocab_size: int, seed: int = 0) -> Network:
    return build_network(study.network_settings(*study.MODELS[model], 8, 8), vocab_size, seed)


@pytest.mark.parametrize("model", ["scratch", "relu", "gru", "lstm"])
def test_the_reach_is_the_gradient_of_a_layer_that_starts_from_an_earlier_state(model: str) -> None:
    network = untrained(model, 3)
    factor = np.float32(60 if model == "scratch" else 2)
    network.load_weights({name: factor * weight for name, weight in network.weight_copies().items()})
    ids = np.random.default_rng(1).integers(0, 3, (5, 8))
    assert gradient_norms(model, network, ids) == pytest.approx(InPyTorch(model, network).reach(ids), rel=1e-10)


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


def test_masks_of_a_truncation_come_from_the_stream_of_masks_of_their_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(Truncation, "draw", lambda *arguments: seen.append(arguments[-1].random()))
    small, cut = task(np.tile([0, 1, 2, 1], 20), 3, num_minibatches=1, num_steps=8, num_hiddens=4), STRATEGIES[-1]
    study._perplexity_after(small, (cut, 3))
    study._truncation_error(replace(small, seed=5), cut)
    masks = masks_rng(5)
    assert seen == [masks_rng(3).random(), *(masks.random() for _ in seen[1:])]


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
    small = task(np.tile([0, 1, 2, 1], 20), 3, num_minibatches=4, num_steps=8, num_hiddens=4)
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
        small_study(1, IDS[:1])


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


IDS = np.random.default_rng(0).integers(0, 9, 500).astype(np.uint8)


def small_study(num_threads: int, val: np.ndarray = IDS[:50], more: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Study a text of which the most frequent tokens are kept, and nothing beyond the first 500."""
    params = load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=SMALL)
    with pytest.MonkeyPatch.context() as patch:
        for limit, value in (("VOCAB", 6), ("VAL_TOKENS", 50), ("TRAIN_TOKENS", 500)):
            patch.setattr(study, f"_MAX_{limit}", value)
        return study_gradients(params, np.append(IDS, IDS[:more]), val, 9, 0, num_threads)


@pytest.fixture(scope="module")
def small() -> tuple[dict[str, Any], dict[str, Any]]:
    return small_study(1)


SEEN = np.where(IDS < 6, IDS, 0).astype(np.int64)
"""What the study sees: rare tokens are replaced."""


def windows_of(num_windows: int, rng: np.random.Generator) -> np.ndarray:
    return SEEN[rng.integers(0, len(SEEN) - 8, num_windows)[:, None] + np.arange(9)]


WINDOWS = windows_of(64, np.random.default_rng(0))


def training(made: InPyTorch, seed: int) -> Iterator[None]:
    """Train for four minibatches; stop before each."""
    optimizer, rng = torch.optim.AdamW(made.weights, weight_decay=0), np.random.default_rng(seed)
    for lr in (0.01, 0.0075, 0.005, 0.0025):
        yield
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        made.loss(windows_of(32, rng)).backward()
        torch.nn.utils.clip_grad_norm_(made.weights, 1)
        optimizer.step()


def rows(table: pd.DataFrame, column: str, **values: object) -> list[float]:
    for name, value in values.items():
        table = table[table[name] == value]
    return table[column].tolist()


@pytest.mark.parametrize("model", ["scratch", "relu", "gru", "lstm"])
def test_reach_and_radius_are_those_of_a_training_in_pytorch(model: str, small: Any) -> None:
    tables, summary = small
    made = InPyTorch(model, untrained(model, 6))
    reaches, radii = [made.reach(WINDOWS)], [made.radius() for _ in training(made, 0)]
    reaches.append(made.reach(WINDOWS))
    radii.append(made.radius())
    for moment, reach in zip(("initial", "trained"), reaches, strict=True):
        found = rows(tables["reach"], "norm", model=model, moment=moment)
        assert found == pytest.approx(np.array(reach) / reach[0], rel=1e-3)
    if model in ("scratch", "relu"):
        expected = pytest.approx([radii[at] for at in (0, 1, 2, 4)], rel=1e-4)
        assert rows(tables["radius"], "spectral_radius", model=model) == expected
        ends = pytest.approx({"initial": radii[0], "trained": radii[-1]}, rel=1e-4)
        assert summary["spectral_radius"][model] == ends


@pytest.mark.parametrize("seed", [0, 1])
def test_perplexities_are_those_of_a_training_in_pytorch(seed: int, small: Any) -> None:
    made = InPyTorch("scratch", untrained("scratch", 6, seed))
    assert len(list(training(made, seed))) == 4
    found = rows(small[0]["trained"], "val_perplexity", strategy="full", seed=seed)
    assert found == pytest.approx([made.loss(SEEN[None, :50]).exp().item()], rel=1e-6)


def test_truncations_are_measured_on_an_untrained_network_whose_states_last(small: Any) -> None:
    table, network = small[0]["truncation"], untrained("scratch", 6)
    study.scale_recurrence(network)
    made = InPyTorch("scratch", network)
    full, cut = made.gradient(WINDOWS), made.gradient(WINDOWS, keeps_state=False)
    assert rows(table, "bias", length=1) == pytest.approx([float((cut - full).norm() / full.norm())], rel=1e-4)
    # A cut after every step leaves nothing to chance; of three draws, the standard error is a root of three smaller.
    assert rows(table, "spread", length=1) == pytest.approx([0], abs=1e-9)
    assert table["strategy"].tolist() == ["regular", "regular", "randomized"]
    assert min(rows(table, "spread", length=4)) > 0.001
    assert table["standard_error"].tolist() == pytest.approx((table["spread"] / 3**0.5).tolist())


def test_the_study_has_a_row_for_everything_and_repeats(small: Any) -> None:
    tables, summary = small
    assert list(summary["spectral_radius"]) == ["scratch", "relu"]
    # Four models at two moments; three truncations and none, with two seeds, none of which trains as another does.
    assert {name: len(tables[name]) for name in ("reach", "trained")} == {"reach": 4 * 2 * 8, "trained": 4 * 2}
    assert tables["trained"]["val_perplexity"].nunique() == 8
    assert str(list(tables["radius"]["minibatch"])) == str([0, 1, 2, 4] * 2)  # whole numbers
    # Again, on two threads, and with more of both splits than is read.
    again, same_summary = small_study(2, IDS[:80], more=100)
    assert same_summary == summary
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, again[name], check_exact=True)


def test_the_stage_prints_and_writes_what_it_finds(run_stage: RunStage, tmp_path: Path) -> None:
    layout = prepare_stage(tmp_path, "the sea came in and the sea went out again\n" * 20)
    settings = SMALL | {"num_minibatches": 1, "num_trainings": 1}
    change_params(layout.params, {"seed": 3} | {f"gradients.{name}": value for name, value in settings.items()})
    assert re.search(r": scratch \d\.\d{3}, \d\.\d{3}; relu", succeeded(run_stage("gradients")))
    assert len(list(layout.reports("gradients").iterdir())) == 5
    assert set(pd.read_csv(layout.reports("gradients", "trained.csv"))["seed"]) == {3}
