"""The noisy sine: shapes, predictions, training steps against PyTorch's, and the stage by hand."""

import json
import math
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import torch

from default_params import PARAMS_FILE
from seqlm.core.settings import load
from seqlm.pipeline.report.book_comparison import compare, sine_values
from seqlm.pipeline.sine import study
from seqlm.pipeline.sine.settings import SineParams
from seqlm.pipeline.sine.study import init_model, k_step_predictions, noisy_sine, predictor, train_model, windows
from smoke import change_params
from stages_by_hand import RunStage, refused, succeeded

LINE = np.arange(20.0)
RNG = np.random.default_rng(1)


def test_the_series_is_a_sine_with_noise_of_the_given_size() -> None:
    quiet, loud = noisy_sine(1000, 0.01, 0.0, 0), noisy_sine(1000, 0.01, 0.2, 0)
    # t runs from 1; sin(0.01 * 157) is nearly sin(pi / 2).
    assert quiet[156] == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(loud - quiet, 0.2 * np.random.default_rng(0).normal(size=1000), atol=1e-14)


def test_windows_are_followed_by_their_labels() -> None:
    features, labels = windows(LINE, 4)
    assert features.tolist() == [list(range(start, start + 4)) for start in range(16)]
    assert labels[:, 0].tolist() == list(range(4, 20))


def test_k_step_predictions_start_from_the_right_values() -> None:
    # A straight line continues: twice the last value minus the one before.
    predictions = k_step_predictions(lambda features: 2 * features[:, -1:] - features[:, -2:-1], LINE, 4, 3)
    assert predictions.shape == (20 - 4 - 3 + 1, 3)
    # Row 0 knows 0..3 and predicts 4, 5, 6; the last row ends with the last value, 19.
    assert predictions[0].tolist() == [4, 5, 6]
    assert predictions[-1].tolist() == [17, 18, 19]
    assert study.rmse_by_k(predictions, LINE, 4, 0).tolist() == [0, 0, 0]
    assert study.rmse_by_k(predictions + 2, LINE, 4, 5).tolist() == [2, 2, 2]
    # The naive forecast in row 0 is 3 for the values 4, 5 and 6: errors of 1, 2 and 3.
    naive = k_step_predictions(study.repeat_last, LINE, 4, 3)
    assert naive[0].tolist() == [3, 3, 3]
    assert study.rmse_by_k(naive, LINE, 4, 0).tolist() == [1, 2, 3]


def test_a_linear_network_has_no_curvature() -> None:
    features = np.array([[1.0, 2.0], [3.0, -4.0]])
    assert study.nonlinearity(lambda x: 3 * x[:, :1] - x[:, 1:] + 7, features) == pytest.approx(0, abs=1e-12)
    # The sums of |x_i| are 3 and 7; f(x) + f(-x) - 2 f(0) is twice that: sqrt((6^2 + 14^2) / 2) = 10.77.
    assert study.nonlinearity(lambda x: np.abs(x).sum(1, keepdims=True), features) == pytest.approx(10.7703, abs=1e-4)


@pytest.mark.parametrize("kind", ["MLP", "RNN"])
def test_an_epoch_is_steps_of_adam_on_all_pairs_in_a_random_order(
    kind: Literal["MLP", "RNN"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_BATCH_SIZE", 4)
    features, labels = windows(noisy_sine(14, 0.1, 0.2, 0), 4)  # 10 pairs: minibatches of 4, 4 and 2
    network, other = (init_model(kind, 4, np.random.default_rng(1)) for _ in range(2))
    weights = [weight for weight in other.parameters() if weight.requires_grad]
    optimizer, inputs, targets = (torch.optim.Adam(weights, 0.01), torch.tensor(features), torch.tensor(labels))
    losses, rng = [], np.random.default_rng(2)
    for _ in range(2):
        for batch in np.split(rng.permutation(10), [4, 8]):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(other(inputs[batch]), targets[batch]).backward()
            optimizer.step()
        losses.append(torch.nn.functional.mse_loss(other(inputs), targets).item())
    assert train_model(network, features, labels, 2, np.random.default_rng(2)) == pytest.approx(losses, rel=1e-12)


def test_networks_compute_their_equations() -> None:
    features = np.random.default_rng(3).normal(size=(5, 4))
    mlp = init_model("MLP", 4, RNG)
    w1, b1, w2, b2 = (weight.detach().numpy() for weight in mlp.parameters())
    expected = np.maximum(features @ w1.T + b1, 0) @ w2.T + b2
    np.testing.assert_allclose(predictor(mlp)(features), expected, rtol=1e-12)
    rnn = init_model("RNN", 4, RNG)
    w_xh, w_hh, b_h, second, w_hq, b_q = (weight.detach().numpy() for weight in rnn.parameters())
    assert not second.any()
    state = np.zeros((5, 10))
    for column in features.T:
        state = np.tanh(column[:, None] @ w_xh.T + state @ w_hh.T + b_h)
    np.testing.assert_allclose(predictor(rnn)(features), state @ w_hq.T + b_q, rtol=1e-12)


def test_initial_weights_fill_the_ranges_of_xavier_and_pytorch() -> None:
    # Xavier: sqrt(6 / (200 + 100)) and sqrt(6 / (100 + 1)); biases of a layer with n inputs: sqrt(1 / n).
    of_mlp = [math.sqrt(6 / 300), math.sqrt(1 / 200), math.sqrt(6 / 101), math.sqrt(1 / 100)]
    of_rnn = [math.sqrt(1 / 400)] * 3 + [0] + [math.sqrt(1 / 400)] * 2
    parameters = [*study.SineMLP((200, 100, 1), RNG).parameters(), *study.SineRNN(400, RNG).parameters()]
    for parameter, limit in zip(parameters, of_mlp + of_rnn, strict=True):
        assert parameter.abs().max() <= limit
        if parameter.numel() >= 100:
            assert (parameter.min().item(), parameter.max().item()) == pytest.approx((-limit, limit), rel=0.1)


SMALL = load(PARAMS_FILE, "sine", SineParams).model_copy(
    update={"num_points": 90, "num_train": 60, "tau": 3, "num_epochs": 2, "steps": [1, 2, 5], "taus": [1, 4]}
)  # fmt: skip


def test_predictions_stand_at_the_time_that_they_predict() -> None:
    table, series = study.study_sine(SMALL, 7)[0]["predictions"], noisy_sine(90, 0.01, 0.2, 7)
    rng = np.random.default_rng([7, 1])
    network, (features, labels) = init_model("MLP", 3, rng), windows(series, 3)
    train_model(network, features[:60], labels[:60], 2, rng)
    mlp = predictor(network)
    assert list(table) == ["time", "observed", "one_step", "multi_step", "ahead_1", "ahead_2", "ahead_5"]
    assert table["time"].tolist() == list(range(1, 91))
    assert table["observed"].tolist() == series.tolist()
    # The first prediction from 3 values is the fourth value; several steps ahead start after 60 + 3 values.
    firsts = {"one_step": 3, "multi_step": 63, "ahead_1": 3, "ahead_2": 4, "ahead_5": 7}
    assert {name: int(table[name].notna().argmax()) for name in firsts} == firsts
    assert {name: int(table[name].isna().sum()) for name in firsts} == firsts
    assert table["one_step"][3:].tolist() == pytest.approx(mlp(features)[:, 0].tolist())
    assert table["ahead_1"].equals(table["one_step"])
    found = []
    for start in (60, 0):
        values = series[start : start + 3]
        for _ in range(27):
            values = np.append(values, mlp(values[None, -3:])[0, 0])
        found.append(values[3:].tolist())
    assert table["multi_step"][63:].tolist() == pytest.approx(found[0])
    assert (table["ahead_2"][4], table["ahead_5"][7]) == pytest.approx((found[1][1], found[1][4]))


def test_values_of_tau_are_compared_over_five_seeds() -> None:
    table = study.study_sine(SMALL, 7)[0]["tau"]
    assert table["tau"].tolist() == [1, 4, 1, 4]
    assert table["noise"].tolist() == [0.2] * 2 + [0] * 2
    for row in table.itertuples():
        errors = []
        for seed in range(7, 12):
            series, rng = noisy_sine(90, 0.01, row.noise, seed), np.random.default_rng([seed, 1])
            features, labels = windows(series, row.tau)
            network = init_model("MLP", row.tau, rng)
            train_model(network, features[:60], labels[:60], 2, rng)
            predictions = predictor(network)(features)[60:, 0]
            errors.append(np.sqrt(np.mean((predictions - series[60 + row.tau :]) ** 2)))
        assert row.rmse == pytest.approx(np.mean(errors))
        assert row.deviation == pytest.approx(np.std(errors, ddof=1))


def test_the_stage_meets_the_book(run_stage: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {"sine.taus": [4]})  # values of tau are compared in 10 training runs each
    succeeded(run_stage("sine"))
    summary = json.loads((tmp_path / "reports/sine/summary.json").read_text())
    predictions = pd.read_csv(tmp_path / "reports/sine/predictions.csv")
    for rows in compare(sine_values(summary, predictions)).values():
        assert rows[rows["met"] == False].empty  # noqa: E712
    assert summary["noise_floor"] == 0.2
    assert summary["rmse"]["k_1"] < summary["rmse"]["k_16"] < summary["rmse"]["k_64"]
    # Row i predicts value i + 4. Errors leave out the 600 training rows, and those too near the end for 64 steps.
    error = (predictions["observed"] - predictions["one_step"])[600 + 4 : 1000 - 64 + 1]
    assert summary["rmse"]["k_1"] == pytest.approx(float(np.sqrt(np.mean(error**2))), rel=1e-6)
    errors = pd.read_csv(tmp_path / "reports/sine/errors.csv").set_index(["network", "k"])["rmse"]
    for network, ours in (("MLP", "rmse"), ("repeat the last value", "repeat_rmse")):
        assert errors[network][[1, 64]].tolist() == pytest.approx([summary[ours][k] for k in ("k_1", "k_64")])
    assert summary["rmse"]["k_1"] != errors["RNN", 1] < errors["repeat the last value", 1]
    losses = pd.read_csv(tmp_path / "reports/sine/loss.csv")
    assert losses["network"].tolist() == ["MLP"] * 5 + ["RNN"] * 5
    assert losses["loss"][:5].tolist() == pytest.approx(list(summary["loss"].values()))
    headline = json.loads((tmp_path / "reports/sine/metrics.json").read_text())
    assert headline == {"loss": float(f"{summary['loss']['epoch_5']:.5g}")}
    assert {path.name for path in (tmp_path / "reports/sine").iterdir()} == {
        "metrics.json", "summary.json", "loss.csv", "predictions.csv", "errors.csv", "tau.csv",
    }  # fmt: skip


def test_a_series_that_is_too_short_is_refused(run_stage: RunStage, tmp_path: Path) -> None:
    change_params(tmp_path / "params.yaml", {"sine.num_points": 600})
    complaint = "num_points must be at least num_train + the largest tau + the largest of steps = 696"
    refused(run_stage("sine"), 2, complaint)
