"""Tables of surprisal by context, by class of character, and by confidence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from made_scores import network, ngram, score, scored_text
from seqlm.core.files import write_csv
from seqlm.core.layout import Layout
from seqlm.evaluate.ranking import rank_models
from seqlm.evaluate.tables import (
    CLASSES,
    calibration_error,
    calibration_table,
    character_classes,
    class_table,
    history_table,
    order_table,
    position_table,
)
from seqlm.ngrams.models.base import Uniform
from seqlm.score.diagnostics import Predictor, diagnose
from seqlm.score.ngrams import ngram_predictor
from seqlm.score.store import Score
from seqlm.vocab.corpus import SPLITS


def diagnosed(name: str, predictor: Predictor, ids: np.ndarray) -> Score:
    return score(network(name), {}, diagnose(predictor, ids))


def test_letters_are_classified_by_their_position_in_the_word() -> None:
    #          'o', 'n', 'e', ' ', 'T', '2', 'a', "'", 's', line end
    classes = [CLASSES[index] for index in character_classes("one T2a's\n")]
    first, second, later, space, other = CLASSES
    assert classes == [first, second, later, space, first, other, first, other, first, space]
    assert [CLASSES[index] for index in character_classes("lines")] == [first, second, later, later, later]


def test_surprisal_by_class_is_a_mean_in_bits() -> None:
    # "ab a": b, the space and a are scored, with 1, 2 and 3 bits.
    table = class_table({"m": np.array([1, 2, 3]) * np.log(2)}, "ab a")
    assert list(table.columns) == ["model", "token_class", "share", "bits"]
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


def test_the_table_of_orders_has_static_ngram_models_of_their_own_tokens() -> None:
    texts = {kind: dict.fromkeys(SPLITS, scored_text(40)) for kind in ("char", "word")}
    infos = [
        ngram("c2", order=2), ngram("c1", order=1), ngram("l1", order=1, smoothing="laplace"), ngram("u", order=0),
        ngram("w3", "word", order=3), ngram("read", counted_token="word"), ngram("c2").as_dynamic(), network("net"),
    ]  # fmt: skip
    results, _ = rank_models([score(info, np.full(40, np.log(2))) for info in infos], texts, None)
    assert order_table(results).to_dict("list") == {
        "token": ["char", "char", "char", "word"],
        "smoothing": ["kneser-ney", "kneser-ney", "laplace", "kneser-ney"],
        "order": [1, 2, 1, 3],
        "bits_per_character": pytest.approx([1.0] * 4),
    }


def test_histories_follow_each_other(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for run, epochs in (("a", [1, 2]), ("b", [1])):
        write_csv(layout.reports("train", run, "history.csv"), pd.DataFrame({"run": run, "epoch": epochs}))
    table = history_table(layout, ["b", "a"])
    assert table.to_dict("list") == {"run": ["b", "a", "a"], "epoch": [1, 1, 2]}
    assert table.index.tolist() == [0, 1, 2]
