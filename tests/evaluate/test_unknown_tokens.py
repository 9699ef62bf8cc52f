"""What unknown tokens cost is shown wherever surprisal is shown."""

from pathlib import Path

import numpy as np
import pytest

from seqlm.core.layout import Layout
from seqlm.evaluate.tables import diagnostic_tables, passages
from seqlm.score.heldout.spelling import NATS_OF_ANY_CHARACTER
from seqlm.score.heldout.splits import read_streams
from seqlm.score.store import Score, measure
from seqlm.vocab.corpus_building import SPLITS, build_corpus

BIT = np.log(2)
DIAGNOSES = {"positions": [], "calibration": []}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Write splits of which test has a word, and a letter in it, that train lacks."""
    found = Layout(tmp_path)
    found.splits.mkdir(parents=True)
    texts = {split: found.split(split) for split in SPLITS}
    for split, path in texts.items():
        path.write_text("the zoo the sea\n" if split == "test" else "the sea so sad the heart\n")
    for kind in ("char", "word"):
        build_corpus(texts, found.corpus(kind), kind, " ", 0, [])
    return found


def test_classes_of_characters_bear_what_unknown_ones_cost(layout: Layout) -> None:
    test = read_streams(layout, "char")["test"]
    score = Score("m", "char", {"test": np.full(14, BIT)}, DIAGNOSES)
    table = dict(diagnostic_tables(layout, [score], test))["classes"]
    first = table[table["token_class"] == "first letter"]["bits"].item()
    # z, t and s begin words after the first letter of all: one bit each, and z one of all characters besides.
    assert first == pytest.approx(1 + NATS_OF_ANY_CHARACTER / BIT / 3)
    # All classes together give what the table of models says.
    assert (table["share"] * table["bits"]).sum() == pytest.approx(
        measure(score.nats["test"], test)["bits_per_character"]
    )


def test_passages_bear_the_spelling_of_unknown_words(layout: Layout) -> None:
    streams = {kind: read_streams(layout, kind) for kind in ("char", "word")}
    score = Score("m", "word", {"test": np.full(3, BIT)})
    shown = passages(layout, [score], streams, ["m"], 100)["m"]
    spelling = streams["word"]["test"].unknown_costs[1] / BIT
    assert shown["tokens"] == ["the", "zoo", "the", "sea"]
    assert spelling > 20  # a letter that no word of train has, alone, costs as much
    assert shown["bits"] == [None, pytest.approx(1 + spelling, abs=0.06), 1.0, 1.0]
