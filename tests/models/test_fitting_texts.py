"""What texts `fit_ngram` takes, and that it joins them as documented."""

from pathlib import Path
from typing import Any

import pytest

import seqlm
from seqlm.core.errors import SeqlmError

SENTENCES = [["the", "sea", "came", "in"], ["the", "sea", "went", "out"], ["the", "tide", "came", "in"]]


def test_lists_of_words_are_texts_too() -> None:
    lists = seqlm.fit_ngram(SENTENCES, 2)
    strings = seqlm.fit_ngram([" ".join(sentence) for sentence in SENTENCES], 2)
    assert lists.vocab == strings.vocab
    assert lists.score("the tide went out") == strings.score("the tide went out")


def test_a_line_end_joins_texts() -> None:
    model = seqlm.fit_ngram(["ab", "ab"], 2, "char")
    assert model.vocab.tokens == ["<unk>", "a", "b", "\n"]
    assert model.vocab.counts == [0, 2, 2, 1]
    assert seqlm.fit_ngram("ab\nab", 2, "char").vocab == model.vocab


def test_a_tab_separates_words() -> None:
    model = seqlm.fit_ngram("a\tb c\td", 2)
    assert model.vocab.tokens == ["<unk>", "a", "b", "c", "d"]
    assert model.vocab.tokenize("a\tb") == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"order": "3"}, "order"),
        ({"order": True}, "order"),
        ({"order": 99}, "order"),
        ({"min_freq": True}, "min_freq"),
        ({"epsilon": "1"}, "epsilon"),
        ({"texts": [["the", 3]]}, "a word must be a string, not int"),
    ],
)
def test_values_of_other_types_are_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SeqlmError, match=complaint):
        seqlm.fit_ngram(**{"texts": "the sea came in", **arguments})


def test_the_name_of_a_file_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "my corpus file name.txt"
    path.write_text("the sea came in")
    for texts in (str(path), [str(path)]):
        with pytest.raises(SeqlmError, match=r"name\.txt' is a file: give its text"):
            seqlm.fit_ngram(texts)
