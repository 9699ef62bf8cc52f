"""Tables of surprisal by context, by class of character, by confidence and by order, and passages."""

from pathlib import Path

import numpy as np
import pytest

from encoded_corpora import encode
from made_scores import network, ngram, score, scored_text
from seqlm.core.layout import Layout
from seqlm.models.spelling import UNIFORM_CHAR_NLL
from seqlm.pipeline.evaluate.main_table import main_table
from seqlm.pipeline.evaluate.tables import CLASSES, character_classes, class_table, order_table, passages
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import Scores, make_scores
from seqlm.vocab.corpus import SPLITS

BIT = np.log(2)


def test_letters_are_classified_by_their_position_in_the_word() -> None:
    #          'o', 'n', 'e', ' ', 'T', '2', 'a', "'", 's', line end
    classes = [CLASSES[index] for index in character_classes("one T2a's\n")]
    first, second, later, space, other = CLASSES
    assert classes == [first, second, later, space, first, other, first, other, first, space]
    assert [CLASSES[index] for index in character_classes("lines")] == [first, second, later, later, later]


def test_surprisal_by_class_is_a_mean_in_bits(tmp_path: Path) -> None:
    # "ab a": b, the space and a are scored, with 1, 2 and 3 bits.
    heldout = Heldout(encode(Layout(tmp_path), ["char"], "", "ab ba\n", "ab\n", "ab a\n"), "char")
    table = class_table([made := score(network("m"), np.array([1, 2, 3]) * BIT)], heldout)
    assert list(table.columns) == ["model", "token_class", "share", "bits"]
    found = dict(zip(table["token_class"], table["bits"], strict=True))
    assert found == pytest.approx({"second letter": 1, "space": 2, "first letter": 3})
    assert table["share"].tolist() == pytest.approx([1 / 3] * 3)
    heldout = Heldout(encode(Layout(tmp_path), ["char"], "\n", "ab\na\n", "ab\n", "ab\na\n"), "char")
    named = class_table([made], heldout)["token_class"].tolist()
    assert named == ["first letter", "second letter", "space or line end"]


def test_the_table_of_orders_has_static_ngram_models_of_their_own_tokens() -> None:
    texts = {kind: dict.fromkeys(SPLITS, scored_text(40)) for kind in ("char", "word")}
    infos = [
        ngram("c2", order=2), ngram("c1", order=1), ngram("l1", order=1, smoothing="laplace"), ngram("u", order=0),
        ngram("w3", "word", order=3), ngram("read", counted_token="word"), ngram("c2").as_dynamic(), network("net"),
    ]  # fmt: skip
    table = main_table([score(info, np.full(40, BIT)) for info in infos], texts, None)
    assert order_table(table).to_dict("list") == {
        "token": ["char", "char", "char", "word"],
        "smoothing": ["kneser-ney", "kneser-ney", "laplace", "kneser-ney"],
        "order": [1, 2, 1, 3],
        "bits_per_character": pytest.approx([1.0] * 4),
    }


@pytest.fixture
def heldouts(tmp_path: Path) -> dict[str, Heldout]:
    """Scored texts; test has a word, and a letter in it, that train lacks."""
    train = "the sea so sad the heart\n"
    layout = encode(Layout(tmp_path), ("char", "word"), " ", train, train, "the zoo the sea\n")
    return {kind: Heldout(layout, kind) for kind in ("char", "word")}


def one_bit_each(heldout: Heldout, token: str) -> Scores:
    texts = heldout.streams
    nll = {split: np.full(len(text.spelling), BIT) for split, text in texts.items()}
    return make_scores(network("m", token), nll, texts, {"positions": []})


def test_classes_of_characters_and_passages_include_the_cost_of_unknown_tokens(heldouts: dict[str, Heldout]) -> None:
    score = one_bit_each(heldouts["char"], "char")
    table = class_table([score], heldouts["char"])
    first = table[table["token_class"] == "first letter"]["bits"].item()
    # After the first letter of the text, z, t and s begin words: one bit each, and z the cost of an unknown character.
    assert first == pytest.approx(1 + UNIFORM_CHAR_NLL / BIT / 3)
    # The mean over all classes is the value in the main table.
    assert (table["share"] * table["bits"]).sum() == pytest.approx(score.metrics["test"]["bits_per_character"])
    shown = passages([one_bit_each(heldouts["word"], "word")], heldouts)["m"]
    spelling = heldouts["word"].stream("test").spelling[0] / BIT
    assert shown["tokens"] == ["the", "zoo", "the", "sea"]
    assert spelling > 20  # a letter that no word of train has costs this much alone
    assert shown["bits"] == [None, pytest.approx(1 + spelling, abs=0.06), 1.0, 1.0]


def test_the_ngram_models_that_are_shown_are_static_and_chosen_on_val(heldouts: dict[str, Heldout]) -> None:
    texts, scores = {kind: heldout.streams for kind, heldout in heldouts.items()}, []
    # Each with its surprisals on val and on test.
    for info, *sizes in (
        (ngram("chosen"), 2, 3),
        (ngram("lucky"), 3, 1),
        (ngram("dynamic").as_dynamic(), 1, 2),
        (ngram("read", counted_token="word"), 1, 2),
        (ngram("words", "word"), 9, 9),
    ):
        of_kind = texts[info.token]
        nll = {
            split: np.full(len(of_kind[split].spelling), size) for split, size in zip(SPLITS[1:], sizes, strict=True)
        }
        scores.append(make_scores(info, nll, of_kind))
    assert list(passages(scores, heldouts)) == ["read", "chosen", "words"]
