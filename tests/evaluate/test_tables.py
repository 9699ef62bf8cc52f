"""Tables of surprisal by context, by class of character, and by confidence."""

import numpy as np
import pandas as pd
import pytest

from made_scores import network, score
from seqlm.evaluate.tables import (
    CLASSES,
    calibration_error,
    calibration_table,
    character_classes,
    class_table,
    position_table,
)
from seqlm.ngrams.models.base import Uniform
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.ngrams import ngram_predictor
from seqlm.score.store import Score


def diagnosed(name: str, predictor: Predictor, ids: np.ndarray) -> Score:
    return score(network(name), {}, diagnose(predictor, ids))


def test_letters_are_classified_by_their_position_in_the_word() -> None:
    #          'o', 'n', 'e', ' ', 'T', '2', 'a', "'", 's', line end
    classes = [CLASSES[index] for index in character_classes("one T2a's\n")]
    first, second, later, space, other = CLASSES
    assert classes == [first, second, later, space, first, other, first, other, first, space]


def test_surprisal_by_class_is_a_mean_in_bits() -> None:
    # "ab a": b, the space and a are scored, with 1, 2 and 3 bits.
    table = class_table({"m": np.array([1, 2, 3]) * np.log(2)}, "ab a")
    found = dict(zip(table["token_class"], table["bits"], strict=True))
    assert found == pytest.approx({"second letter": 1, "space or line end": 2, "first letter": 3})
    assert table["share"].tolist() == pytest.approx([1 / 3] * 3)


def test_positions_are_numbered_by_the_tokens_of_context() -> None:
    table = position_table([diagnosed("uniform", ngram_predictor(Uniform(5)), np.arange(400) % 5)])
    assert table["position"].tolist() == list(range(1, 129))
    assert table["perplexity"].tolist() == pytest.approx([5.0] * 128)


def test_a_model_with_true_probabilities_is_calibrated_and_an_overconfident_one_is_not() -> None:
    fair = np.full((4000, 2), [0.7, 0.3])
    sure = np.full((4000, 2), [0.99, 0.01])
    ids = np.concatenate([[0], (np.random.default_rng(0).random(4000) < 0.3).astype(int)])

    def fixed(probs: np.ndarray) -> Predictor:
        return Predictor(lambda windows: windows[:, 1:] * 0.0, lambda _: iter([probs[:900], probs[900:]]))

    table = calibration_table([diagnosed("fair", fixed(fair), ids), diagnosed("sure", fixed(sure), ids)])
    assert table["tokens"].tolist() == [4000, 4000]
    errors = calibration_error(table)
    assert errors["fair"] < 0.03
    assert errors["sure"] == pytest.approx(0.29, abs=0.03)


def test_the_calibration_error_weights_bins_by_their_tokens() -> None:
    table = pd.DataFrame({"model": "m", "confidence": [0.5, 0.9], "accuracy": [0.4, 0.9], "tokens": [1, 3]})
    assert calibration_error(table)["m"] == pytest.approx(0.1 * 1 / 4)
