"""Section 8.7: what the stage measures, against PyTorch in double precision and by hand."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import cross_entropy

from compiled_networks import scratch_network
from default_params import PARAMS_FILE
from seqlm.core.errors import DataError
from seqlm.core.settings import load
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.network import Network
from seqlm.pipeline.gradients import study
from seqlm.pipeline.gradients.settings import GradientsParams
from seqlm.pipeline.gradients.study import Task, Truncation, gradient_error, gradient_norms, train_briefly
from small_training import prepare_stage
from smoke import change_params
from stages_by_hand import RunStage, refused, succeeded

SMALL = {
    "num_hiddens": 8, "num_steps": 8, "num_minibatches": 4, "lengths": [1, 4], "num_draws": 3,
    "trained_lengths": [1, 4], "num_trainings": 2,
}  # fmt: skip
PARAMS = load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=SMALL)
PERIODIC = np.tile([0, 1, 2, 1], 20)


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

    def loss(self, windows: np.ndarray, *, keeps_state: bool = True) -> torch.Tensor:
        """Return the mean loss of a token, with the gradient through states or without it."""
        state, states, one_hot = None, [], torch.eye(self.vocab_size, dtype=torch.float64)[windows]
        for inputs in one_hot[:, :-1].split(1, dim=1):
            hidden, state = self.layer(inputs, state)
            states.append(hidden)
            state = state if keeps_state else state.detach()
        targets = torch.tensor(windows[:, 1:])
        return cross_entropy(self.output(torch.cat(states, 1)).flatten(0, 1), targets.flatten())

    def gradient(self, windows: np.ndarray, *, keeps_state: bool = True) -> torch.Tensor:
        gradients = torch.autograd.grad(self.loss(windows, keeps_state=keeps_state), self.weights)
        return torch.cat([gradient.flatten() for gradient in gradients])

    def reach(self, ids: np.ndarray) -> list[float]:
        """Return the norms of the gradients of the last loss by each state, which the layer then starts from."""
        inputs, found = torch.eye(self.vocab_size, dtype=torch.float64)[ids[:, :-1]], []
        for step in range(inputs.shape[1], 0, -1):
            _, state = self.layer(inputs[:, :step])
            hidden, memory = state if isinstance(state, tuple) else (state, None)
            hidden = hidden.detach().requires_grad_()
            start, rest = hidden if memory is None else (hidden, memory), inputs[:, step:]
            last = self.layer(rest, start)[0][:, -1] if rest.shape[1] else hidden[0]
            cross_entropy(self.output(last), torch.tensor(ids[:, -1]), reduction="sum").backward()
            found.append(hidden.grad[0].norm(dim=1).mean().item())
        return found

    def radius(self) -> float:
        """Return the spectral radius of the first square matrix that carries the state."""
        matrix = self.layer.weight_hh_l0.detach().numpy()
        return float(np.abs(np.linalg.eigvals(matrix[: matrix.shape[1]])).max())


def test_cuts_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert Truncation("full", 7).draw(7, 2, rng) is None
    keep = np.asarray(Truncation("regular", 3).draw(7, 2, rng))
    assert (np.diff(np.flatnonzero(keep[:, 0] == 0)) == 3).all()
    assert (keep[:, 0] == keep[:, 1]).all()
    # Each step continues with probability 3/4: the factor is 0 or 4/3, and its mean is 1.
    keep = np.asarray(Truncation("randomized", 4).draw(1000, 50, rng))
    assert np.unique(keep).tolist() == pytest.approx([0, 4 / 3])
    assert float(keep.mean()) == pytest.approx(1, abs=0.02)


def test_minibatches_are_the_same_whatever_the_truncation() -> None:
    # A minibatch is 32 windows; the first gradient of the output layer is that of the same weights on the same windows.
    first_steps, last_steps = [], []
    for length in (1, 8):
        network = scratch_network(3, 8)
        draw = partial(Truncation("regular", length).draw, 8, 32, np.random.default_rng(0))
        weights = [network.weight_copies()["b_q"] for _ in train_briefly(network, PERIODIC, PARAMS, 0, draw)]
        first_steps.append(weights[1].tolist())
        last_steps.append(weights[-1].tolist())
    assert first_steps[0] == first_steps[1]
    assert last_steps[0] != last_steps[1]


def test_the_rate_falls_and_training_ends_at_a_gradient_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    monkeypatch.setattr(CompiledNetwork, "step", lambda _, lr: seen.append(lr))
    assert list(train_briefly(scratch_network(3, 4), PERIODIC, PARAMS, 0)) == [0, 1, 2, 3, 4]
    assert seen == pytest.approx([0.01, 0.0075, 0.005, 0.0025])
    norms = iter([1.0, np.inf])
    monkeypatch.setattr(CompiledNetwork, "clip_gradients", lambda *_: next(norms))
    small = Task(PARAMS, PERIODIC, PERIODIC, 3, 0, 1)
    assert np.isnan(study._perplexity_after(small, (Truncation("full", 8), 0)))
    assert len(seen) == 5


def test_gradients_are_clipped_and_recurrent_weights_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    network, norms = scratch_network(3, 16, factor=300), []
    monkeypatch.setattr(CompiledNetwork, "step", lambda *_: norms.append(np.linalg.norm(network.gradients[0])))
    list(train_briefly(network, PERIODIC, PARAMS.model_copy(update={"num_minibatches": 1}), 0))
    assert norms == pytest.approx([1], rel=1e-5)
    network = scratch_network(3, 16)
    w_hh = network.named_weights()["W_hh"]
    before = w_hh.copy()
    study.scale_recurrence(network)
    torch.testing.assert_close(w_hh, 25 * before)  # 1 / (0.01 * 16 ** 0.5)


def test_bias_and_spread_by_hand() -> None:
    # The mean of the draws is (2, 1), and the norm of the full gradient 4.
    errors = gradient_error(np.array([[1.0, 1], [3, -1], [2, 3]]), np.array([0.0, 4]))
    assert errors == pytest.approx((13**0.5 / 4, (10 / 3) ** 0.5 / 4))


def test_a_text_without_one_window_is_refused() -> None:
    # A window of 5 steps holds 6 tokens: inputs and the last target.
    assert study.draw_windows(np.arange(6), 1, 5, np.random.default_rng(0)).tolist() == [[0, 1, 2, 3, 4, 5]]
    with pytest.raises(DataError, match=r"train has 5 tokens: gradients\.num_steps must be at most 4"):
        study.draw_windows(np.arange(5), 1, 5, np.random.default_rng(0))
    with pytest.raises(DataError, match=r"val has too few tokens \(1\): perplexity needs at least 2"):
        small_study(1, IDS[:1])


@pytest.mark.parametrize("name", ["lengths", "trained_lengths"])
def test_lengths_beyond_the_windows_end_with_code_2(name: str, run_stage: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {f"gradients.{name}": [1, 49]})
    refused(run_stage("gradients"), 2, f"{name} must not exceed num_steps = 48")


IDS = np.random.default_rng(0).integers(0, 9, 500).astype(np.uint8)


def small_study(num_threads: int, val: np.ndarray = IDS[:50], more: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Study a text of which the most frequent tokens are kept, and nothing beyond the first 500."""
    with pytest.MonkeyPatch.context() as patch:
        for limit, value in (("VOCAB", 6), ("VAL_TOKENS", 50), ("TRAIN_TOKENS", 500)):
            patch.setattr(study, f"_MAX_{limit}", value)
        return study.study_gradients(PARAMS, np.append(IDS, IDS[:more]), val, 9, 0, num_threads)


@pytest.fixture(scope="module")
def small() -> tuple[dict[str, Any], dict[str, Any]]:
    return small_study(1)


SEEN = np.where(IDS < 6, IDS, 0).astype(np.int64)
"""What the study sees: rare tokens are replaced."""
TASK = Task(PARAMS, SEEN, SEEN, 6, 0, 1)


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


@pytest.mark.parametrize("model", ["scratch", "relu", "gru", "lstm"])
def test_reach_and_radius_are_those_of_a_training_in_pytorch(model: str, small: Any) -> None:
    tables, summary = small
    network = study.small_network(TASK, model, 0)
    made = InPyTorch(model, network)
    initial, radii = made.reach(WINDOWS), [made.radius() for _ in training(made, 0)]
    assert gradient_norms(model, network, WINDOWS) == pytest.approx(initial, rel=1e-10)
    trained = made.reach(WINDOWS)
    radii.append(made.radius())
    reach = [norm / norms[0] for norms in (initial, trained) for norm in norms]
    assert tables["reach"].query("model == @model")["norm"].tolist() == pytest.approx(reach, rel=1e-3)
    if model in ("scratch", "relu"):
        expected = pytest.approx([radii[at] for at in (0, 1, 2, 4)], rel=1e-4)
        assert tables["radius"].query("model == @model")["spectral_radius"].tolist() == expected
        ends = pytest.approx({"initial": radii[0], "trained": radii[-1]}, rel=1e-4)
        assert summary["spectral_radius"][model] == ends


@pytest.mark.parametrize("seed", [0, 1])
def test_perplexities_are_those_of_a_training_in_pytorch(seed: int, small: Any) -> None:
    made = InPyTorch("scratch", study.small_network(TASK, "scratch", seed))
    assert len(list(training(made, seed))) == 4
    found = small[0]["trained"].query("strategy == 'full' and seed == @seed")["val_perplexity"]
    assert found.tolist() == pytest.approx([made.loss(SEEN[None, :50]).exp().item()], rel=1e-6)


def test_truncations_are_measured_on_an_untrained_network_whose_states_last(small: Any) -> None:
    table, network = small[0]["truncation"], study.small_network(TASK, "scratch", 0)
    study.scale_recurrence(network)
    made = InPyTorch("scratch", network)
    full, cut = made.gradient(WINDOWS), made.gradient(WINDOWS, keeps_state=False)
    assert table["bias"][0] == pytest.approx(float((cut - full).norm() / full.norm()), rel=1e-4)
    # A cut after every step leaves nothing to chance; of three draws, the standard error is a root of three smaller.
    assert table["spread"][0] == pytest.approx(0, abs=1e-9)
    assert table[["strategy", "length"]].to_numpy().tolist() == [["regular", 1], ["regular", 4], ["randomized", 4]]
    assert table["spread"][1:].min() > 0.001
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
    change_params(layout.params, {f"gradients.{name}": value for name, value in settings.items()})
    assert re.search(r": scratch \d\.\d{3}, \d\.\d{3}; relu", succeeded(run_stage("gradients")))
    assert len(list(layout.reports("gradients").iterdir())) == 5
