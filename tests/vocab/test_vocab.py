"""Vocabularies and encoded splits equal those of plain Python; prompts cut from the text; the stage by hand."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from encoded_corpora import write_splits
from reference import clean_line
from seqlm.core.errors import DataError, MachineError, ParamsError
from seqlm.core.files import write_json
from seqlm.core.layout import Layout
from seqlm.vocab import corpus as corpus_module
from seqlm.vocab.corpus import SPLITS, build_corpus, load_corpus, load_split, prompts
from seqlm.vocab.kinds import Kind
from seqlm.vocab.separators import Separators
from seqlm.vocab.vocabulary import Vocab
from smoke import change_params
from stages_by_hand import Finished, RunStage, succeeded


def build(folder: Path, *texts: str, kind: Kind = "char", separator: str = "") -> Vocab:
    return build_corpus(write_splits(folder, *texts), folder, kind, separator)


def test_the_book_has_the_vocabularies_of_the_book(tmp_path: Path) -> None:
    book = Path(os.environ.get("SEQLM_DATA_DIR", tmp_path)) / "timemachine.txt"
    if not book.exists():
        pytest.skip("SEQLM_DATA_DIR does not hold timemachine.txt")
    whole = "".join(clean_line(line) + "\n" for line in book.read_text(encoding="utf-8").splitlines())
    chars = build(tmp_path, whole)
    assert (len(chars), chars.splits["train"].num_tokens) == (28, 170_580)
    by_word = build(tmp_path, whole, kind="word")
    assert by_word.tokens[:10] == ["<unk>", "the", "i", "and", "of", "a", "to", "was", "in", "that"]
    line_0 = by_word.tokenize("the time machine by h g wells")
    assert by_word.encode(line_0).tolist() == [1, 19, 50, 40, 2183, 2184, 400]


def cut(text: str, count: int, *, unknown: str = "") -> list[str]:
    tokens = ["<unk>", *sorted(set(text) - set(unknown))]
    vocab = Vocab("char", tokens, [1] * len(tokens), "\n", {})
    return prompts(vocab, np.asarray(vocab.encode(list(text)), np.uint8), count)


def test_prompts_end_before_spaces_and_follow_each_other() -> None:
    # "of a passive, passiv" has twenty characters and ends inside a word, so the last space ends the prompt.
    text = "  of a passive, passive kind. \nThe other went on"
    assert cut(text, 2) == ["of a passive,", "passive kind. \nThe"]
    assert cut("exactly twenty chars and more", 1) == ["exactly twenty chars"]
    # A text without spaces is cut anywhere.
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏"
    assert cut(text, 2) == [text[:20], text[20:]]
    assert cut("naïve men", 1, unknown="ï") == ["nave men"]
    with pytest.raises(DataError, match="nothing to continue"):
        cut(" \n ", 1)


@given(st.text(st.sampled_from("ab \n漢"), max_size=80), st.integers(1, 4))
def test_every_prompt_is_part_of_the_text(text: str, count: int) -> None:
    if not text.strip():
        return
    end = 0
    for prompt in cut(text, count):
        assert 0 < len(prompt) <= 20
        assert prompt == prompt.strip()
        end = text.index(prompt, end) + len(prompt)


texts = st.lists(
    st.sampled_from(["", "a", "b c", "<unk> a", "漢字 é é", "the the sea", "a\u3000b\t", "  ", "😀"]), max_size=12
)
splits = st.lists(texts.map(lambda lines: "a b\n" + "".join(line + "\n" for line in lines)), min_size=3, max_size=3)
kinds = st.sampled_from(["char", "word"])
separators = st.sampled_from(["", " ", "\n"])


@given(splits, kinds, separators, st.integers(0, 3), st.sampled_from([1, 2, 7, 1 << 20]))
def test_a_corpus_equals_that_of_plain_python(
    contents: list[str], kind: Kind, separator: str, min_freq: int, piece: int
) -> None:
    streams = [reference.tokens(content, kind, separator) for content in contents]
    tokens, counts = reference.vocabulary(streams[0], min_freq)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_PIECE", piece)
        folder = Path(name)
        paths = write_splits(folder, *contents)
        if not any(counts[1:]):
            with pytest.raises(ParamsError, match=rf"vocab\.{kind}\.min_freq = {min_freq}: no {kind}"):
                build_corpus(paths, folder / "corpus", kind, separator, min_freq)
            assert not (folder / "corpus").exists()
            return
        vocab = build_corpus(paths, folder / "corpus", kind, separator, min_freq)
        assert (vocab.tokens, vocab.counts) == (tokens, counts)
        corpus = load_corpus(folder / "corpus", kind)
        assert corpus.vocab == vocab
        for split, stream, content in zip(SPLITS, streams, contents, strict=True):
            ids = load_split(folder / "corpus", split)
            assert ids.tolist() == reference.encode(stream, tokens)
            assert ids.dtype == np.min_scalar_type(len(tokens) - 1)
            info = vocab.splits[split]
            assert info.num_tokens == len(stream)
            assert info.num_unknown == np.count_nonzero(ids == 0)
            assert info.num_chars == len(reference.tokens(content, "char", separator))
            encoded = corpus.splits[split]
            assert len(encoded) == len(stream)
            for start, stop in [(0, None), (0, 3), (2, 5), (1, None)]:
                assert encoded.texts(start, stop) == stream[start:stop]
                distinct = encoded.distinct_ids(start, stop)
                assert [([*tokens, *corpus.unknown_tokens])[index] for index in distinct] == stream[start:stop]
                assert encoded.lengths(start, stop).tolist() == [len(token) for token in stream[start:stop]]


def test_a_text_beyond_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.core.memory.machine_memory", lambda: 100)
    with pytest.raises(MachineError, match=r"^a text of .* needs about 0 GB of memory, and this machine has 0: use"):
        build(tmp_path, "the sea\n" * 3)


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
    ("setting", "normalise", "recorded", "separator"),
    [
        ("auto", "letters", "", ""),  # a corpus of the registry, joined as in the book
        ("auto", "letters", " ", " "),  # a user's own file
        ("auto", "none", "", "\n"),  # raw text keeps its line ends
        ("", "none", " ", ""),
        ("\\n", "letters", "", "\n"),  # as a shell passes a line end on
    ],
)
def test_lines_are_joined_as_the_text_asks_for_and_the_vocabulary_remembers(
    setting: str, normalise: str, recorded: str, separator: str, stage: Stage, layout: Layout
) -> None:
    write_json(layout.corpus_record, {"line_separator": recorded})
    succeeded(stage("char", *["so\ninstead\n"] * 3, vocab__line_separator=setting, preprocess__normalise=normalise))
    vocab = Vocab.load(layout.vocab("char"))
    assert (vocab.line_separator, vocab.splits["test"].num_tokens) == (separator, 9 + len(separator))
    assert vocab.splits["test"].num_chars == 9 + len(separator)


def test_another_language_after_train_is_warned_of(stage: Stage, layout: Layout) -> None:
    # At the end of train, each line has one word of five for the first time; the words of val and test are all others.
    train = LINE * 50 + "".join(f"the sea and the storm{chr(ord('a') + index)}\n" for index in range(10))
    result = stage("word", train, "la mer et la marée\n" * 7 + LINE * 3, "le vent la mer et\n" * 8 + LINE * 2)
    warning = "70.0% of the words of the validation set are unknown, but only 20.0% of those of the end of the training"
    assert result.stderr.startswith(f"warning: {warning}")
    assert result.stderr.count("\n") == 1
    summary = layout.reports("vocab", "word", "summary.json")
    assert json.loads(summary.read_text())["warnings"][0].startswith(warning)
    # Each line has five words: 5 of 50 are unknown in val, 20 of 50 in test.
    unknown = "a strange word is here\n"
    result = stage("word", val=LINE * 9 + unknown, test=LINE * 6 + unknown * 4)
    assert "40.0% of the words of the test set are unknown, but only 10.0% of those of the val" in result.stderr
    # 8 of 50 are more than 5 of 50 by more than a twentieth, but not twice as many.
    assert stage("word", val=LINE * 9 + unknown, test=LINE * 8 + unknown + "a strange word and the\n").stderr == ""
    # As many new words as at the end of train are no reason for a warning, nor are words that min_freq leaves out.
    assert stage("word", train, "the wind and the sea\n" * 10, "the wind and the sea\n" * 10).stderr == ""
    assert json.loads(summary.read_text())["warnings"] is None
    rare = "".join(f"the sea and {word} {word}\n" for word in "abcdefghij")
    assert stage("word", LINE * 9 + rare, rare, rare, vocab__word__min_freq=3).stderr == ""
    assert "a" not in Vocab.load(layout.vocab("word"))


def test_the_separators_of_words_are_those_of_train(stage: Stage, layout: Layout) -> None:
    lines = {split: LINE * size for split, size in (("train", 3), ("val", 2), ("test", 1))}
    succeeded(stage("word", **lines, vocab__line_separator="\n"))
    # Twelve spaces and two line ends, with add-one smoothing; a word follows each blank at once.
    separators = Separators({" ": 13 / 16, "\n": 3 / 16}, {" ": 1 / 17, "\n": 1 / 17, "": 15 / 17})
    assert Vocab.load(layout.vocab("word")).separators == separators
    for kind in ("char", "subword"):
        succeeded(stage(kind, **{split: text * 20 for split, text in lines.items()}))
        assert Vocab.load(layout.vocab(kind)).separators is None


def test_the_cost_of_unknown_characters_is_explained(stage: Stage) -> None:
    # 2 of 695 characters are unknown, at 20.1 bits: 0.058 bits per character.
    warning = "unknown characters add 0.06 bits per character to every model's score on the test set: each is charged"
    val = "the sea\n" * 99 + "жё\n"
    assert warning in stage("char", val=val, test=val).stderr
    assert stage("char", val=val, test="the sea\n" * 199 + "жё\n").stderr == ""
