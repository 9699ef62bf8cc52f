"""What bits per character divide by: the characters that were scored."""

import math
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.layout import Layout
from seqlm.score.heldout.splits import Streams, chars_of_first, read_streams
from seqlm.score.store import measure
from seqlm.vocab.corpus_building import SPLITS
from seqlm.vocab.kinds.registry import KINDS, Kind
from subwords import build


def streams(folder: Path, kind: Kind, text: str, separator: str) -> Streams:
    layout = Layout(folder)
    layout.splits.mkdir(parents=True)
    texts = {split: layout.split(split) for split in SPLITS}
    for path in texts.values():
        path.write_text(text)
    build(texts, layout.corpus(kind), kind, separator)
    return read_streams(layout, kind)


@pytest.mark.parametrize(
    ("kind", "text", "separator", "expected"),
    [
        # "the seawas it" has 13 characters: without "t" or "the" 12 or 10 are left.
        ("char", "the sea\nwas it\n", "", 12),
        ("word", "the sea\nwas it\n", "", 10),
        ("word", "the sea\nwas it\n", " ", 11),
        # Of "\n\nthe sea" the characters " sea" follow the first word, and 8 the first character.
        ("word", "\n\nthe sea\n", "\n", 4),
        ("char", "\n\nthe sea\n", "\n", 8),
    ],
)
def test_the_characters_after_the_first_token_are_scored(
    kind: Kind, text: str, separator: str, expected: int, tmp_path: Path
) -> None:
    assert {stream.scored_chars for stream in streams(tmp_path, kind, text, separator).values()} == {expected}


def test_separators_before_the_first_word_may_fill_whole_blocks() -> None:
    assert chars_of_first("word", ["sea"], iter(["\n\n", "", "\n", "\nsea went"])) == 4 + 3
    assert chars_of_first("char", ["\n"], iter(["\n\n", "sea"])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_bit_for_each_character_is_one_bit_per_character_for_all_kinds(kind: Kind, tmp_path: Path) -> None:
    found = streams(tmp_path, kind, "extraordinarily long words\ncome first\n", " ")["test"]
    # A word costs its letters and the separator before it.
    lengths = np.diff(found.ends) + (kind == "word")
    assert measure(lengths * math.log(2), found)["bits_per_character"] == pytest.approx(1)
    # The part that a run was fitted to: of two characters one is scored.
    if kind == "char":
        assert measure(np.array([math.log(2)]), found.beginning(2))["bits_per_character"] == pytest.approx(1)
