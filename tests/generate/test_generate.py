"""Texts that models generate, and what is measured of them."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.generate.samples import Sample, longest_common_substring, repeated_share, samples_markdown
from seqlm.generate.text_generators import encode_prefix, ngram_generator, sample_ngrams
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.rnn.generation import SamplingConfig
from seqlm.vocab.kinds import KINDS
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from small_runs import write_models
from stages_by_hand import RunStage

TRAIN = {"train": SplitInfo(60, 60, 0, "")}
VOCAB = Vocab("char", ["<unk>", "a", "b", "c"], [0, 3, 2, 1], "", TRAIN)
MODEL = KneserNey(count_ngrams(np.array([1, 2, 3] * 20), 4, 3), 3)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


def test_an_ngram_model_generates_what_it_counted() -> None:
    rng = np.random.default_rng(0)
    assert sample_ngrams(MODEL, [1, 2], 6, 0.0, rng) == [3, 1, 2, 3, 1, 2]
    assert 0 not in sample_ngrams(MODEL, [1], 200, 5.0, rng)


def test_a_generator_continues_text() -> None:
    generator = ngram_generator(MODEL, VOCAB)
    assert generator.name == "char-kneser-ney-3"
    assert generator.generate(["ab", "abc"], 4, SamplingConfig(), 0, "error") == ["cabc", "abca"]
    words = ngram_generator(MODEL, Vocab("word", VOCAB.tokens, VOCAB.counts, "", TRAIN))
    assert words.generate(["a b"], 2, SamplingConfig(), 0, "error") == [" c a"]


def test_a_character_that_the_vocabulary_lacks_is_named() -> None:
    with pytest.raises(DataError, match="the character 'Z' of the prefix is not in the vocabulary"):
        encode_prefix(VOCAB, "aZ", "error")
    assert encode_prefix(VOCAB, "aZ", "unk") == [1, 0]
    with pytest.raises(DataError, match="the prefix '' contains no character: give at least one"):
        encode_prefix(VOCAB, "", "unk")


def test_repeats_are_measured() -> None:
    # 16 characters have 9 substrings of eight; the last one repeats the first.
    assert repeated_share("abcdefghabcdefgh") == pytest.approx(1 / 9)
    assert repeated_share("short") == 0


def test_copies_are_measured() -> None:
    # "the sea", nothing, nothing, " sea", " sea"
    for text, length in {"the sea xyz": 7, "qqq": 0, "": 0, "a seat": 4, "漢字 at sea": 4}.items():
        assert longest_common_substring(text, "near the sea") == length


def test_markup_in_a_sample_is_shown_as_text() -> None:
    text = samples_markdown([Sample("m", "<i>", 0, "|<script>alert(1)</script>\n*x*", 0, 0)])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "\\|" in text
    assert text.count("\n| 0 |") == 1


def test_the_stage_writes_samples_of_each_model_and_logs_them(layout: Layout, run_stage: RunStage) -> None:
    result = run_stage("generate")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    # The run, and for each kind of token the highest order of Laplace and Kneser-Ney.
    models = ["small", *(f"{kind}-{smoothing}-3" for kind in KINDS for smoothing in ("laplace", "kneser-ney"))]
    assert [line.partition(":")[0] for line in lines] == models
    assert all(re.fullmatch(r"[a-z0-9-]+: 6 samples, \d+\.\d s", line) for line in lines)
    sections = re.findall(r"^## (.+)$", layout.reports("generate", "samples.md").read_text(), re.MULTILINE)
    assert sections == models


def test_by_hand_texts_are_printed_and_nothing_is_written(layout: Layout, run_stage: RunStage) -> None:
    result = run_stage("generate", "--model", "small", "--temperature", "0", "--prefix", "the sea")
    assert result.stdout.startswith("small, temperature 0: the sea")
    assert result.stdout.count("\n") == 1
    assert not layout.reports("generate").exists()
    result = run_stage("generate", "--model", "nope", "--prefix", "the sea")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --model nope: no such model: choose from small, char-laplace-3, ")


def test_a_model_needs_no_files_of_other_models(layout: Layout, run_stage: RunStage) -> None:
    for kind in ("word", "subword"):
        shutil.rmtree(layout.corpus(kind))
        shutil.rmtree(layout.ngrams(kind))
    for model in ("small", "char-kneser-ney-3"):
        result = run_stage("generate", "--model", model, "--prefix", "the sea")
        assert (result.returncode, result.stderr) == (0, "")
    result = run_stage("generate", "--model", "word-kneser-ney-3", "--prefix", "the sea")
    assert result.returncode == 2
    assert "data/corpus/word/vocab.json: no such file: run the stage that writes it" in result.stderr
