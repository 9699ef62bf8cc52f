"""A user's own text under trained models: `score.py --text`."""

import gzip
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from seqlm.core.layout import Layout
from seqlm.rnn.array_network import stream_nll
from seqlm.rnn.building import load_network
from small_runs import write_models
from smoke import ROOT, change_params
from stages_by_hand import RunStage, prepare


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
        (b"12345", "small", 3, "my.txt: has no letters A-Z: use another text, or set preprocess.normalise: none"),
        ("مرحبا".encode(), "small", 3, "has no letters A-Z: use another text, or set preprocess.normalise: none"),
        (b"a", "small", 3, "my.txt: has only 1 character after cleaning"),
        (b"sea", "word-kneser-ney-2", 3, "the text has only 1 word: use a longer text"),
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


def test_the_changes_of_cleaning_are_stated(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("The sea at Zürich: 120 euros\n", encoding="utf-8")
    lines = run_stage("score", "--text", "my.txt").stdout.splitlines()
    # ü, the colon and three digits.
    assert lines[0] == "cleaned like the corpus, by preprocess.normalise: spaces replace 5 characters other than A-Z"
    assert lines[1].startswith("5.3% of the letters are not A-Z and were dropped")
    page = (trained.root / "surprisal.html").read_text()
    assert f'<p class="note">C{lines[0][1:]}.</p>' in page
    (trained.root / "my.txt").write_text("The sea\nat  noon\n")
    assert run_stage("score", "--text", "my.txt").stdout.startswith("small: perplexity")


def test_without_cleaning_nothing_is_replaced(run_stage: RunStage, trained: Layout) -> None:
    change_params(trained.params, {"preprocess.normalise": "none"})
    (trained.root / "my.txt").write_text("the sea, 120 times\n")
    assert run_stage("score", "--text", "my.txt").stdout.startswith("small: perplexity")


def test_a_long_text_is_scored_as_a_whole_and_shown_in_part(run_stage: RunStage, trained: Layout) -> None:
    with gzip.open(trained.root / "my.txt.gz", "wt") as file:
        file.write("the sea came in " * 2000)
    result = run_stage("score", "--text", "my.txt.gz", "--model", "char-uniform")
    assert result.returncode == 0, result.stderr
    assert "31,998 tokens" in result.stdout
    remark = "the page shows the first 20,000 of 31,999 characters"
    assert result.stdout.startswith(remark)
    page = (trained.root / "surprisal.html").read_text()
    assert f"T{remark[1:]}." in page
    assert len(re.findall(r"<i [^>]*>.</i>", page)) == 20_000


def test_an_unknown_word_is_shown_with_its_spelling(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the zebra went")
    assert run_stage("score", "--text", "my.txt", "--model", "word-uniform").returncode == 0
    page = (trained.root / "surprisal.html").read_text()
    shown = {word: float(bits) for bits, word in re.findall(r"title=([\d.]+)>(\w+)", page)}
    assert shown["zebra"] > 20 > shown["went"]


def test_git_ignores_the_page_of_a_text(root: Path) -> None:
    assert "/surprisal.html" in (root / ".gitignore").read_text().splitlines()


def test_several_texts_become_one_table(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "a.txt").write_text("The sea\ncame in\n")
    with gzip.open(trained.root / "b.txt.gz", "wt") as file:
        file.write("the land\n")
    options = ["--text", "a.txt", "--text", "b.txt.gz", "--model", "small", "--model", "word-kneser-ney-3"]
    result = run_stage("score", *options, "--table", "out.csv", "--space", "after")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("a.txt:\n  small: perplexity")
    assert "the table, bits by word, blanks added to the word after which they come: out.csv" in result.stdout
    assert not (trained.root / "surprisal.html").exists()
    table = pd.read_csv(trained.root / "out.csv")
    assert list(table) == ["file", "position", "text", "space", "small", "word-kneser-ney-3"]
    assert table["text"].tolist() == ["the", "sea", "came", "in", "the", "land"]
    assert set(table["space"]) == {"after"}
    # The columns add up to the totals: fourteen scored characters of a.txt, and seven of b.txt.gz.
    bits = [float(found) for found in re.findall(r"small: .*?([\d.]+) bits per character", result.stdout)]
    for name, of_text, num_chars in zip(("a.txt", "b.txt.gz"), bits, (14, 7), strict=True):
        assert table.loc[table["file"] == name, "small"].sum() == pytest.approx(of_text * num_chars, abs=0.01)


def test_standard_input_and_an_arpa_file(trained: Layout) -> None:
    (trained.root / "x.arpa").write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t<unk>\n-0.5\tsea\n\n\\end\\\n")
    options = ["--text", "-", "--arpa", "x.arpa", "--table", "out.csv"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "stages" / "score.py"), *options],
        cwd=prepare(trained.root), input="the sea\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("x.arpa: perplexity 3.162 per word")
    table = pd.read_csv(trained.root / "out.csv")
    assert list(table) == ["position", "text", "space", "x.arpa"]
    # The first word of a stream is not scored; the second has log10 p = -0.5.
    assert table["x.arpa"].tolist() == pytest.approx([math.nan, 0.5 / math.log10(2)], nan_ok=True)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--model", "small", "--table", "x.csv"], "--table needs --text"),
        (["--arpa", "my.txt"], "--arpa needs --text"),
        (["--text", "my.txt", "--text", "my.txt"], "--text: the same text is given twice"),
        (["--text", "my.txt", "--text", "other.txt", "--page", "x.html"], "--page shows one text: give one --text"),
        (["--text", "my.txt", "--model", "word-kneser-ney-3", "--table", "x.csv", "--by", "char"], "choose --by word"),
        (["--text", "my.txt", "--model", "subword-uniform", "--table", "x.csv", "--space", "after"], "--space before"),
    ],
)
def test_options_that_do_not_fit_end_with_one_line(
    options: list[str], complaint: str, run_stage: RunStage, trained: Layout
) -> None:
    for name in ("my.txt", "other.txt"):
        (trained.root / name).write_text("the sea came in\n")
    result = run_stage("score", *options)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (trained.root / "x.csv").exists()
