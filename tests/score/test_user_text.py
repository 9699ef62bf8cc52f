"""A user's own text under trained models: `score.py --text`."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from seqlm.core.layout import Layout
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from small_runs import write_models
from stages_by_hand import RunStage


@pytest.fixture
def trained(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


def test_the_text_is_scored_and_shown(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my<b>.txt").write_text("The SEA, <i>came</i>!\n")
    result = run_stage("score", "--text", "my<b>.txt", "--model", "small", "--model", "word-kneser-ney-2")
    assert result.returncode == 0, result.stderr
    # Cleaned as the corpus: "the sea i came i".
    text = "the sea i came i"
    vocab = json.loads((trained.root / "data/corpus/char/vocab.json").read_text())["tokens"]
    ids = np.array([vocab.index(character) for character in text])
    network = load_network(trained.run("small"), "small", torch.device("cpu"))
    expected = math.exp(stream_nll(network, ids).mean())
    assert f"small: perplexity {expected:.3f} per char" in result.stdout
    assert "word-kneser-ney-2: perplexity" in result.stdout
    # Of the four scored words, "sea i came i", train lacks both i.
    assert "4 tokens, 50.0% of them unknown" in result.stdout
    page = (trained.root / "surprisal.html").read_text()
    assert "my&lt;b&gt;.txt" in page
    assert "my<b>" not in page
    assert page.count('class="passage"') == 2


def test_all_runs_are_the_default(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea\n")
    result = run_stage("score", "--text", "my.txt", "--page", "out/page.html")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("small: perplexity")
    assert (trained.root / "out/page.html").exists()


def test_a_model_over_words_can_be_read_as_one_over_characters(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea came in and the\n")
    result = run_stage("score", "--text", "my.txt", "--model", "char-by-word-kneser-ney-3", "--model", "char-uniform")
    assert result.returncode == 0, result.stderr
    words, uniform = (float(bits) for bits in re.findall(r"([\d.]+) bits per character", result.stdout))
    assert words < uniform / 4
    assert result.stdout.count("22 tokens, 0.0% of them unknown") == 2


@pytest.mark.parametrize(
    ("content", "run", "code", "complaint"),
    [
        (b"the sea", "nope", 2, "--model nope: no such model: choose from small, char-uniform, char-laplace-1"),
        (b"the sea", "word-kneser-ney-9", 2, "--model word-kneser-ney-9: no such model: choose from"),
        (b"the sea", "char-by-word-kneser-ney-2", 2, "subword-kneser-ney-3, char-by-word-kneser-ney-3\n"),
        (b"12345", "small", 3, "too little is left after cleaning"),
        (b"sea", "word-kneser-ney-2", 3, "the text has 1 word tokens: at least two are needed"),
        (b"\xff\xfe", "small", 3, "UTF-16"),
        (b"sea \xe9", "small", 3, "not UTF-8 at byte 4"),
    ],
)
def test_wrong_texts_and_names_end_with_one_line(
    content: bytes, run: str, code: int, complaint: str, run_stage: RunStage, trained: Layout
) -> None:
    (trained.root / "my.txt").write_bytes(content)
    result = run_stage("score", "--text", "my.txt", "--model", run)
    assert result.returncode == code
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (trained.root / "surprisal.html").exists()


@pytest.mark.parametrize("text", ["se", "the sea came in"])
def test_a_character_costs_as_much_in_a_short_text_as_in_a_long_one(
    text: str, run_stage: RunStage, trained: Layout
) -> None:
    (trained.root / "my.txt").write_text(text)
    result = run_stage("score", "--text", "my.txt", "--model", "char-uniform")
    size = len(json.loads(trained.vocab("char").read_text())["tokens"])
    # The first character is neither scored nor counted; each of the others costs log2 of the vocabulary size.
    assert f"{math.log2(size):.3f} bits per character, {len(text) - 1} tokens" in result.stdout


def test_an_unknown_word_is_shown_with_its_spelling(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the zebra went")
    assert run_stage("score", "--text", "my.txt", "--model", "word-uniform").returncode == 0
    page = (trained.root / "surprisal.html").read_text()
    shown = {word: float(bits) for bits, word in re.findall(r'title="([\d.]+) bits">(\w+)', page)}
    assert shown["zebra"] > 20 > shown["went"]


def test_git_ignores_the_page_of_a_text(root: Path) -> None:
    assert "/surprisal.html" in (root / ".gitignore").read_text().splitlines()
