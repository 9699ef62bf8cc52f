"""The cost of unknown tokens is shown wherever surprisals are shown."""

from pathlib import Path

import numpy as np
import pytest

from made_scores import network, ngram
from seqlm.core.layout import Layout
from seqlm.evaluate.ranking import rank_models
from seqlm.evaluate.tables import diagnostic_tables, passages
from seqlm.heldout.scored_text import Heldout, load_heldout
from seqlm.heldout.selection import select_heldout
from seqlm.heldout.spelling import NATS_OF_ANY_CHARACTER
from seqlm.score.store import Score, score_of
from seqlm.vocab.corpus import SPLITS, build_corpus

BIT = np.log(2)


@pytest.fixture
def heldouts(tmp_path: Path) -> dict[str, Heldout]:
    """Scored texts; test has a word, and a letter in it, that train lacks."""
    layout, found = Layout(tmp_path), {}
    layout.splits.mkdir(parents=True)
    texts = {split: layout.split(split) for split in SPLITS}
    for split, path in texts.items():
        path.write_text("the zoo the sea\n" if split == "test" else "the sea so sad the heart\n")
    for kind in ("char", "word"):
        build_corpus(texts, layout.corpus(kind), kind, " ", 0, [])
        select_heldout(layout, kind, 1000)
        found[kind] = load_heldout(layout.heldout(kind), kind)
    return found


def one_bit_each(heldout: Heldout, token: str) -> Score:
    texts = heldout.texts()
    nats = {split: np.full(text.num_scored, BIT) for split, text in texts.items()}
    return score_of(network("m", token), nats, texts, {"positions": [], "calibration": []})


def test_classes_of_characters_include_the_cost_of_unknown_ones(heldouts: dict[str, Heldout]) -> None:
    score = one_bit_each(heldouts["char"], "char")
    tables = list(diagnostic_tables([score], heldouts["char"]))
    assert [name for name, _ in tables] == ["positions", "classes", "calibration", "calibration"]
    table = tables[1][1]
    first = table[table["token_class"] == "first letter"]["bits"].item()
    # After the first letter of the text, z, t and s begin words: one bit each, and z the cost of an unknown character.
    assert first == pytest.approx(1 + NATS_OF_ANY_CHARACTER / BIT / 3)
    # The mean over all classes is the value in the main table.
    assert (table["share"] * table["bits"]).sum() == pytest.approx(score.metrics["test"]["bits_per_character"])


def test_passages_include_the_spelling_of_unknown_words(heldouts: dict[str, Heldout]) -> None:
    score = one_bit_each(heldouts["word"], "word")
    texts = {kind: heldout.texts() for kind, heldout in heldouts.items()}
    results, _ = rank_models([score], texts, None)
    shown = passages(results, {"word": heldouts["word"], "char": heldouts["char"]}, 100)["m"]
    spelling = heldouts["word"].text("test").unknown_costs[1] / BIT
    assert shown["tokens"] == ["the", "zoo", "the", "sea"]
    assert spelling > 20  # a letter that no word of train has costs this much alone
    assert shown["bits"] == [None, pytest.approx(1 + spelling, abs=0.06), 1.0, 1.0]


def test_the_ngram_model_of_each_kind_that_is_shown_is_static_and_chosen_on_val(heldouts: dict[str, Heldout]) -> None:
    texts, scores = {kind: heldout.texts() for kind, heldout in heldouts.items()}, []
    for info, val, test in (
        (ngram("chosen"), 2, 3),
        (ngram("lucky"), 3, 1),
        (ngram("dynamic").as_dynamic(), 1, 2),
        (ngram("read", counted_token="word"), 1, 2),
        (ngram("words", "word"), 9, 9),
    ):
        of_kind = texts[info.token]
        nats = {split: np.full(of_kind[split].num_scored, size) for split, size in (("val", val), ("test", test))}
        scores.append(score_of(info, nats, of_kind))
    results, _ = rank_models(scores, texts, None)
    assert results[0].score.name == "lucky"
    assert list(passages(results, heldouts, 100)) == ["chosen", "words"]
