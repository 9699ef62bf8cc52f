"""Surprisal by context, by class of character, and by confidence."""

import numpy as np
import pandas as pd
import pytest
import torch

from seqlm.score.diagnostics import CLASSES, calibration_error, calibration_table, character_classes, class_table, counting_predictor, network_predictor, position_table
from seqlm.core.metrics import perplexity
from seqlm.rnn.scoring import stream_nats
from seqlm.ngrams.counting import count_ngrams
from seqlm.ngrams.models import KneserNey, Uniform, nats
from seqlm.rnn.scratch import ScratchRNN

TEXT = np.random.default_rng(0).integers(0, 5, 400)


def scratch() -> ScratchRNN:
    model = ScratchRNN(5, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.flat.mul_(50)
    return model


def test_letters_are_classed_by_their_place_in_the_word() -> None:
    #         ' o', 'n', 'e', ' ', 'T', '2', 'a', "'", 's', line end
    classes = [CLASSES[index] for index in character_classes("one T2a's\n")]
    first, second, later, space, other = CLASSES
    assert classes == [first, second, later, space, first, other, first, other, first, space]


def test_surprisal_by_class_is_a_mean_in_bits() -> None:
    # "ab a": scored are b, the space and a, with 1, 2 and 3 bits.
    table = class_table({"m": np.array([1, 2, 3]) * np.log(2)}, "ab a")
    found = dict(zip(table["token_class"], table["bits"], strict=True))
    assert found == pytest.approx({"second letter": 1, "space or line end": 2, "first letter": 3})
    assert table["share"].tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("kind", ["network", "counting"])
def test_windows_and_distributions_agree_with_the_scores_of_the_stream(kind: str) -> None:
    counted = KneserNey(count_ngrams(TEXT, 5, 3), 3)
    network = scratch()
    predictor = network_predictor(network) if kind == "network" else counting_predictor(counted)
    scores = stream_nats(network, TEXT[:60]) if kind == "network" else nats(counted, TEXT[:60])
    assert predictor.window_nats(TEXT[None, :60])[0] == pytest.approx(scores, abs=1e-5)
    probs = predictor.distributions(TEXT[:60])
    assert probs.sum(1) == pytest.approx(np.ones(59))
    assert -np.log(probs[np.arange(59), TEXT[1:60]]) == pytest.approx(scores, abs=1e-5)


def test_positions_of_a_uniform_model_are_all_alike() -> None:
    table = position_table({"uniform": counting_predictor(Uniform(5))}, TEXT)
    assert table["position"].tolist() == list(range(1, 129))
    assert table["perplexity"].tolist() == pytest.approx([5.0] * 128)


def test_a_text_of_one_window_gives_the_surprisal_at_each_place() -> None:
    table = position_table({"m": network_predictor(scratch())}, TEXT[:30])
    expected = [perplexity(value, 1) for value in stream_nats(scratch(), TEXT[:30])]
    assert table["perplexity"].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_model_that_knows_its_doubts_is_calibrated_and_a_sure_one_is_not() -> None:
    fair = np.full((4000, 2), [0.7, 0.3])
    sure = np.full((4000, 2), [0.99, 0.01])
    ids = np.concatenate([[0], (np.random.default_rng(0).random(4000) < 0.3).astype(int)])

    def fixed(probs: np.ndarray):
        return type(counting_predictor(Uniform(2)))(lambda windows: windows[:, 1:] * 0.0, lambda _: probs)

    table = calibration_table({"fair": fixed(fair), "sure": fixed(sure)}, ids)
    assert table["tokens"].tolist() == [4000, 4000]
    errors = calibration_error(table)
    assert errors["fair"] < 0.03
    assert errors["sure"] == pytest.approx(0.29, abs=0.03)


def test_the_calibration_error_weighs_bins_by_their_tokens() -> None:
    table = pd.DataFrame({"model": "m", "confidence": [0.5, 0.9], "accuracy": [0.4, 0.9], "tokens": [1, 3]})
    assert calibration_error(table)["m"] == pytest.approx(0.1 * 1 / 4)
