"""The vocab stage by hand: splits that cannot be scored are refused, and unusual ones are warned of."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqlm.core.files import write_json
from seqlm.core.layout import Layout
from seqlm.vocab.vocabulary import Vocab
from smoke import change_params
from stages_by_hand import Finished, RunStage, refused, succeeded
from subwords import write_splits

LINE = "the sea and the tide\n"
Stage = Callable[..., Finished]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    write_json(layout.corpus_record, {"line_separator": ""})
    return layout


@pytest.fixture
def stage(run_stage: RunStage, layout: Layout) -> Stage:

    def run(kind: str, train: str = LINE, val: str = LINE, test: str = LINE, **settings: Any) -> Finished:
        write_splits(layout.splits, train, val, test)
        change_params(layout.params, {name.replace("__", "."): value for name, value in settings.items()})
        return run_stage("vocab", "--kind", kind)

    return run


@pytest.mark.parametrize(
    ("kind", "split", "content", "complaint"),
    [
        ("word", "test", "tide\n", "the test split has 1 word, and scoring it needs at least two"),
        ("word", "val", "\n \n", "the val split has 0 words"),
        ("char", "val", "a\n", "the val split has 1 character"),
        ("char", "train", "\n\n", "the train split has 0 characters"),
    ],
)
def test_short_splits_fail(kind: str, split: str, content: str, complaint: str, stage: Stage, tmp_path: Path) -> None:
    result = stage(kind, **{split: content})
    refused(result, 3, complaint)
    assert f"preprocess.split.{split}" in result.stderr
    assert not (tmp_path / "data" / "corpus").exists()
    assert not (tmp_path / "reports" / "vocab").exists()


def test_two_tokens_in_a_split_are_enough(stage: Stage) -> None:
    for kind in ("char", "word"):
        succeeded(stage(kind, val="a\nb\n", test="the tide\n"))


@pytest.mark.parametrize(
    ("setting", "normalise", "recorded", "separator"),
    [
        ("auto", "letters", "", ""),  # a corpus of the registry, joined as in the book
        ("auto", "letters", " ", " "),  # a user's own file
        ("auto", "none", "", "\n"),  # raw text keeps its line ends
        (" ", "letters", "", " "),
        ("", "none", " ", ""),
        ("\n", "letters", " ", "\n"),
    ],
)
def test_lines_are_joined_as_the_text_asks_for_and_the_vocabulary_remembers(
    setting: str, normalise: str, recorded: str, separator: str, stage: Stage, layout: Layout
) -> None:
    write_json(layout.corpus_record, {"line_separator": recorded})
    settings = {"vocab__line_separator": setting, "preprocess__normalise": normalise}
    for kind, num_tokens in (("char", 9 + len(separator)), ("word", 2)):
        succeeded(stage(kind, *["so\ninstead\n"] * 3, **settings))
        vocab = Vocab.load(layout.vocab(kind))
        assert (vocab.line_separator, vocab.splits["test"].num_tokens) == (separator, num_tokens)
        assert vocab.num_chars["test"] == 9 + len(separator)


@pytest.mark.parametrize("record", ["{}", "[]", '{"line_separator": "xyz"}', "{", None])
def test_a_broken_record_of_the_corpus_is_refused(record: str | None, stage: Stage, layout: Layout) -> None:
    path = layout.corpus_record
    path.unlink() if record is None else path.write_text(record)
    refused(stage("char"), 3, "reports/download/summary.json: ")


def test_a_min_freq_that_leaves_nothing_is_refused(stage: Stage, layout: Layout) -> None:
    # The line has e four times and the space four times.
    complaint = "min_freq = 1000000: no character of train occurs so often; the most frequent one occurs 4 times"
    refused(stage("char", vocab__char__min_freq=1_000_000), 2, f"vocab.char.{complaint}")
    assert list(layout.corpus("char").iterdir()) == []
    succeeded(stage("char", vocab__char__min_freq=4))
    assert json.loads(layout.vocab("char").read_text())["tokens"] == ["<unk>", "e", " "]


def test_a_jump_in_unknown_words_is_warned_of(stage: Stage) -> None:
    unknown = "a strange word is here\n"
    # Each line has five words: 5 of 50 are unknown in val, 20 of 50 in test.
    result = stage("word", val=LINE * 9 + unknown, test=LINE * 6 + unknown * 4)
    warning = "warning: 40.0% of the words of test are unknown, but only 10.0% of those of val"
    assert warning in result.stderr


def test_the_cost_of_unknown_characters_is_explained(stage: Stage) -> None:
    # 2 of 695 characters are unknown, at 20.1 bits: 0.058 bits per character.
    warning = "unknown characters add 0.06 bits per character to every model's score on test: each is charged 20.1 bits"
    val = "the sea\n" * 99 + "жё\n"
    assert warning in stage("char", val=val, test=val).stderr
    assert stage("char", val=val, test="the sea\n" * 199 + "жё\n").stderr == ""


def test_subwords_as_short_as_characters_are_warned_of(stage: Stage) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(0x4E00, 0x5000, 3))) for _ in range(200)]
    texts = ["".join(rng.choice(words, 2000)) + "\n" for _ in range(3)]
    warning = "characters on average: set vocab.subword.vocab_size to auto or to a larger number"
    assert warning in stage("subword", *texts).stderr
    assert stage("subword", *texts, vocab__subword__vocab_size="auto").stderr == ""
