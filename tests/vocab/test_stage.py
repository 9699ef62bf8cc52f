"""The vocab stage by hand: splits that cannot be scored are refused, and unusual ones are warned of."""

import json
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.files import write_json
from seqlm.core.layout import Layout
from seqlm.vocab.vocabulary import Vocab
from stages_by_hand import RunStage


def put_splits(tmp_path: Path, **contents: str) -> None:
    folder = tmp_path / "data" / "text"
    folder.mkdir(parents=True)
    for split in ("train", "val", "test"):
        (folder / f"{split}.txt").write_text(contents.get(split, "the sea and the tide\n"))
    write_json(Layout(tmp_path).corpus_record, {"line_separator": ""})


def change(tmp_path: Path, old: str, new: str) -> None:
    params = tmp_path / "params.yaml"
    text = params.read_text()
    assert old in text
    params.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("kind", "split", "content", "complaint"),
    [
        ("word", "test", "tide\n", "the test split has 1 word, and scoring it needs at least two"),
        ("word", "val", "\n \n", "the val split has 0 words"),
        ("char", "val", "a\n", "the val split has 1 character"),
        ("char", "train", "\n\n", "the train split has 0 characters"),
    ],
)
def test_splits_that_cannot_be_scored_are_refused(
    kind: str, split: str, content: str, complaint: str, run_stage: RunStage, tmp_path: Path
) -> None:
    put_splits(tmp_path, **{split: content})
    result = run_stage("vocab", "--kind", kind)
    assert (result.returncode, result.stderr.count("\n")) == (3, 1)
    assert complaint in result.stderr
    assert f"preprocess.split.{split}" in result.stderr
    assert not (tmp_path / "data" / "corpus").exists()
    assert not (tmp_path / "reports" / "vocab").exists()


@pytest.mark.parametrize(
    ("setting", "normalise", "recorded", "separator"),
    [
        ("auto", "letters", "", ""),  # a corpus of the registry, joined as in the book
        ("auto", "letters", " ", " "),  # a user's own file
        ("auto", "none", "", "\n"),  # raw text keeps its line ends
        ("' '", "letters", "", " "),
        ("''", "none", " ", ""),
        ("'\\n'", "letters", " ", "\n"),
    ],
)
def test_lines_are_joined_as_the_text_asks_for_and_the_vocabulary_remembers(
    setting: str, normalise: str, recorded: str, separator: str, run_stage: RunStage, tmp_path: Path
) -> None:
    layout, lines = Layout(tmp_path), "so\ninstead\n"
    put_splits(tmp_path, train=lines, val=lines, test=lines)
    write_json(layout.corpus_record, {"line_separator": recorded})
    change(tmp_path, "line_separator: auto", f"line_separator: {setting}")
    change(tmp_path, "normalise: letters", f"normalise: {normalise}")
    for kind, num_tokens in (("char", 9 + len(separator)), ("word", 2)):
        assert run_stage("vocab", "--kind", kind).returncode == 0
        vocab = Vocab.load(layout.vocab(kind))
        assert (vocab.line_separator, vocab.splits["test"].num_tokens) == (separator, num_tokens)
        assert vocab.num_chars["test"] == 9 + len(separator)


@pytest.mark.parametrize("record", ["{}", "[]", '{"line_separator": "xyz"}', "{", None])
def test_a_broken_record_of_the_corpus_is_refused(record: str | None, run_stage: RunStage, tmp_path: Path) -> None:
    put_splits(tmp_path)
    path = Layout(tmp_path).corpus_record
    path.unlink() if record is None else path.write_text(record)
    result = run_stage("vocab", "--kind", "char")
    assert (result.returncode, result.stderr.count("\n")) == (3, 1)
    assert "reports/download/summary.json: " in result.stderr


def test_two_tokens_in_a_split_are_enough(run_stage: RunStage, tmp_path: Path) -> None:
    put_splits(tmp_path, val="a\nb\n", test="the tide\n")
    for kind in ("char", "word"):
        result = run_stage("vocab", "--kind", kind)
        assert result.returncode == 0, result.stderr


def test_a_min_freq_that_leaves_nothing_is_refused(run_stage: RunStage, tmp_path: Path) -> None:
    put_splits(tmp_path)
    change(tmp_path, "min_freq: 0\n", "min_freq: 1000000\n")
    result = run_stage("vocab", "--kind", "char")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    # "the sea and the tide" has e four times and the space four times.
    assert (
        "vocab.char.min_freq = 1000000: no character of train occurs so often; the most frequent one occurs 4 times"
        in result.stderr
    )
    assert list((tmp_path / "data" / "corpus" / "char").iterdir()) == []
    change(tmp_path, "min_freq: 1000000\n", "min_freq: 4\n")
    assert run_stage("vocab", "--kind", "char").returncode == 0
    tokens = json.loads((tmp_path / "data" / "corpus" / "char" / "vocab.json").read_text())["tokens"]
    assert tokens == ["<unk>", "e", " "]


def test_a_jump_in_unknown_words_is_warned_of(run_stage: RunStage, tmp_path: Path) -> None:
    known, unknown = "the sea and the tide\n", "a strange word is here\n"
    put_splits(tmp_path, val=known * 9 + unknown, test=known * 6 + unknown * 4)
    # Each line has five words: 5 of 50 are unknown in val, 20 of 50 in test.
    warning = "warning: 40.0% of the words of test are unknown, but only 10.0% of those of val"
    assert warning in run_stage("vocab", "--kind", "word").stderr
    (tmp_path / "data/text/test.txt").write_text(known * 9 + unknown)
    assert run_stage("vocab", "--kind", "word").stderr == ""


def test_the_cost_of_unknown_characters_is_explained(run_stage: RunStage, tmp_path: Path) -> None:
    put_splits(tmp_path, val="the sea\n" * 99 + "жё\n", test="the sea\n" * 99 + "жё\n")
    # 2 of 695 characters are unknown, at 20.1 bits: 0.058 bits per character.
    warning = "unknown characters add 0.06 bits per character to every model's score on test: each is charged 20.1 bits"
    assert warning in run_stage("vocab", "--kind", "char").stderr
    (tmp_path / "data/text/test.txt").write_text("the sea\n" * 199 + "жё\n")
    assert run_stage("vocab", "--kind", "char").stderr == ""


def test_subwords_as_short_as_characters_are_warned_of(run_stage: RunStage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(0x4E00, 0x5000, 3))) for _ in range(200)]
    texts = ["".join(rng.choice(words, 2000)) + "\n" for _ in range(3)]
    put_splits(tmp_path, **dict(zip(("train", "val", "test"), texts, strict=True)))
    result = run_stage("vocab", "--kind", "subword")
    assert "characters on average: set vocab.subword.vocab_size to auto or to a larger number" in result.stderr
    change(tmp_path, "vocab_size: 500\n", "vocab_size: auto\n")
    assert run_stage("vocab", "--kind", "subword").stderr == ""
