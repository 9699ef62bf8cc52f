"""A user's own text under trained models: `score.py --text`."""

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import seqlm
from seqlm.core.layout import Layout
from seqlm.core.progress import quantity
from seqlm.networks.building import open_network
from seqlm.networks.network import stream_nll
from seqlm.vocab.subwords import BYTE_TOKENS
from seqlm.vocab.vocabulary import Vocab
from small_runs import write_models
from smoke import ROOT, change_params
from stages_by_hand import Finished, RunStage, prepare, refused, succeeded

PAGE = "surprisal.html"
ARPA = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t<unk>\n-0.5\tsea\n\n\\end\\\n"
MARKED = "\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-0.5\t</s>\n-0.4\tthe\n-0.3\tsea\n\n\\end\\\n"
COLUMNS = ["position", "text", "original", "start", "end", "reason", "space"]
Score = Callable[..., Finished]


@pytest.fixture
def trained(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


@pytest.fixture
def score(run_stage: RunStage, trained: Layout) -> Score:
    """Scores a text under models, all runs if none is named; ``name``: the text's file."""

    def run(text: str | bytes, *models: str, name: str = "my.txt") -> Finished:
        content = text.encode() if isinstance(text, str) else text
        (trained.root / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return run_stage("score", "--text", name, *(f"--model={model}" for model in models))

    return run


def tokens(layout: Layout) -> list[str]:
    found: list[str] = json.loads(layout.vocab("char").read_text())["tokens"]
    return found


def test_the_text_is_scored_and_shown(score: Score, trained: Layout) -> None:
    printed = succeeded(score("The SEA, <i>came</i>!\n", "small", "word-kneser-ney-2", name="my<b>.txt"))
    # Cleaned as the corpus: "the sea i came i".
    ids = np.array([tokens(trained).index(character) for character in "the sea i came i"])
    network = open_network(trained.run("small"), "small", Vocab.load(trained.vocab("char")).key, "cpu", 1)
    assert f"small: perplexity {math.exp(stream_nll(network, ids).mean()):.3f} per char" in printed
    assert "word-kneser-ney-2: perplexity" in printed
    # Of the four scored words, "sea i came i", train lacks both i.
    assert "4 tokens, 50.0% of them unknown" in printed
    page = (trained.root / PAGE).read_text()
    assert "my&lt;b&gt;.txt" in page
    assert "my<b>" not in page
    assert passages(trained)["models"].keys() == {"small", "word-kneser-ney-2"}


def passages(layout: Layout) -> dict[str, Any]:
    """Return what the page's surprisal view shows."""
    data = re.search(r'id="passages">(.*?)</script>', (layout.root / PAGE).read_text())
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_a_model_over_words_can_be_read_as_one_over_characters(score: Score) -> None:
    printed = succeeded(score("the sea came in and the\n", "char-by-word-kneser-ney-3", "char-uniform"))
    words, uniform = (float(bits) for bits in re.findall(r"([\d.]+) bits per character", printed))
    assert words < uniform / 4
    assert printed.count("22 tokens, 0.0% of them unknown") == 2


@pytest.mark.parametrize(
    ("content", "run", "code", "complaint"),
    [
        (b"the sea", "nope", 2, "error: there is no model 'nope': choose from small, char-uniform, char-laplace-1"),
        (b"the sea", "char-by-word-kneser-ney-2", 2, ", char-by-word-kneser-ney-3\n"),
        (b"12345", "small", 3, "my.txt: has no letters A-Z: use another text, or set preprocess.normalise: none"),
        (b"a", "small", 3, "my.txt: has only 1 character after cleaning"),
        (b"sea", "word-kneser-ney-2", 3, "the text has only 1 word: use a longer text"),
        (b"sea \xe9", "small", 3, "not UTF-8 at byte 4"),
    ],
)
def test_texts_are_refused(content: bytes, run: str, code: int, complaint: str, score: Score, trained: Layout) -> None:
    refused(score(content, run), code, complaint)
    assert not (trained.root / PAGE).exists()


@pytest.mark.parametrize("text", ["se", "the sea came in"])
def test_a_character_costs_as_much_in_a_short_text_as_in_a_long_one(text: str, score: Score, trained: Layout) -> None:
    bits = math.log2(len(tokens(trained)))
    # The first character is neither scored nor counted; each of the others costs log2 of the vocabulary size.
    assert f"{bits:.3f} bits per character, {quantity(len(text) - 1, 'token')}," in succeeded(
        score(text, "char-uniform")
    )


def test_the_changes_of_cleaning_are_stated(score: Score, run_stage: RunStage, trained: Layout) -> None:
    text = "The sea at Zürich: 120 euros\n"
    lines = succeeded(score(text)).splitlines()
    # ü, the colon and three digits.
    assert lines[0] == "cleaned like the corpus, by preprocess.normalise: spaces replace 5 characters other than A-Z"
    assert lines[1].startswith("5.3% of the letters are not A-Z and were dropped")
    assert f'<p class="note">C{lines[0][1:]}.</p>' in (trained.root / PAGE).read_text()
    assert succeeded(score("The sea\nat  noon\n")).startswith("small: perplexity")
    # Python says the same.
    model = seqlm.open(trained.root)["small"]
    assert list(model.score(text).remarks) == lines[:2]
    assert model.score("The sea\nat  noon\n").remarks == ()
    # An ARPA file has no corpus.
    (trained.root / "x.arpa").write_text(ARPA)
    (trained.root / "my.txt").write_text("the sea, 120 times\n")
    printed = succeeded(run_stage("score", "--text", "my.txt", "--arpa", "x.arpa"))
    assert re.match(r"x\.arpa: .* 3 tokens, 100\.0% of them unknown", printed)
    # What matters is how the corpus was cleaned, not how the next one will be.
    change_params(trained.params, {"preprocess.normalise": "none"})
    assert succeeded(score("the sea, 120 times\n")).startswith("cleaned like the corpus")


def test_what_models_do_not_read_is_stated(score: Score, trained: Layout) -> None:
    printed = succeeded(score("the sea came\nin and went out\n", "small", "word-kneser-ney-2")).splitlines()
    vocab = json.loads(trained.vocab("char").read_text())
    assert vocab["line_separator"] == " "  # so no line says that lines are joined with nothing between them
    assert [line.partition(":")[0] for line in printed] == ["small", "word-kneser-ney-2", "the page"]
    assert ["spaces and line ends would add" in line for line in printed] == [False, True, False]


def test_a_long_text_is_scored_as_a_whole_and_shown_in_part(score: Score, trained: Layout) -> None:
    printed = succeeded(score("the sea came in " * 2000, "char-uniform", name="my.txt.gz"))
    remark = "the page shows the first 20,000 of 31,999 characters"
    assert "31,998 tokens" in printed
    assert printed.startswith(remark)
    page = (trained.root / PAGE).read_text()
    assert f"T{remark[1:]}." in page
    assert len(passages(trained)["text"]) == 20_000


def test_sentence_marks_are_not_shown(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea\n\nthe\n")
    (trained.root / "marks.arpa").write_text(MARKED)
    decimals = [[3, 0.4], None, [3, 0.3 + 2 * 0.5], None, None, [3, 0.4 + 0.5]]  # an empty line is a sentence too
    expected = [each and [3, round(each[1] / math.log10(2), 1)] for each in decimals]
    for models in (["--arpa", "marks.arpa"], ["--arpa", "marks.arpa", "--model", "small"]):
        succeeded(run_stage("score", "--text", "my.txt", *models))
        found = passages(trained)
        assert found["text"].split() == ["the", "sea", "the"]
        costs = found["models"]["marks.arpa"]
        assert [cost for cost in costs if cost] == [cost for cost in expected if cost]
    assert (found["text"], costs) == ("the sea  the", expected)


def test_an_unknown_word_is_shown_with_its_spelling(score: Score, trained: Layout) -> None:
    succeeded(score("the zebra went", "word-uniform"))
    zebra, went = [cost[1] for cost in passages(trained)["models"]["word-uniform"] if cost][1:]
    assert zebra > 20 > went
    assert f"/{PAGE}" in (ROOT / ".gitignore").read_text().splitlines()


def test_several_texts_become_one_table(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "a.txt").write_text("The sea\ncame in\n")
    (trained.root / "b.txt.gz").write_bytes(gzip.compress(b"the land\n"))
    options = ["--text", "a.txt", "--text", "b.txt.gz", "--model", "small", "--model", "word-kneser-ney-3"]
    printed = succeeded(run_stage("score", *options, "--table", "out.csv", "--space", "after"))
    assert printed.startswith("a.txt:\n  small: perplexity")
    assert "the table, bits by word, blanks added to the word after which they come: out.csv" in printed
    assert not (trained.root / PAGE).exists()
    table = pd.read_csv(trained.root / "out.csv")
    assert list(table) == ["file", *COLUMNS, "small", "word-kneser-ney-3"]
    assert table["text"].tolist() == ["the", "sea", "came", "in", "the", "land"]
    assert table["original"].tolist() == ["The", "sea", "came", "in", "the", "land"]
    assert table["start"].tolist() == [0, 4, 8, 13, 0, 4]
    first = "without the first character; not scored: the first word"
    assert table["reason"].fillna("").tolist() == [first, "", "", "", first, ""]
    assert set(table["space"]) == {"after"}
    # The columns add up to the totals: fourteen scored characters of a.txt, and seven of b.txt.gz.
    bits = [float(found) for found in re.findall(r"small: .*?([\d.]+) bits per character", printed)]
    for name, of_text, num_chars in zip(("a.txt", "b.txt.gz"), bits, (14, 7), strict=True):
        assert table.loc[table["file"] == name, "small"].sum() == pytest.approx(of_text * num_chars, abs=0.01)


def test_standard_input_and_an_arpa_file(trained: Layout) -> None:
    (trained.root / "x.arpa").write_text(ARPA)
    command = [sys.executable, str(ROOT / "stages" / "score.py"), "--text=-", "--arpa=x.arpa", "--table=out.csv"]
    done = subprocess.run(command, cwd=prepare(trained.root), input="the sea\n", capture_output=True, text=True)
    assert succeeded(done).startswith("x.arpa: perplexity 3.162 per word")
    table = pd.read_csv(trained.root / "out.csv")
    assert list(table) == [*COLUMNS, "x.arpa"]
    # The first word of a stream is not scored; the second has log10 p = -0.5.
    assert table["x.arpa"].tolist() == pytest.approx([math.nan, 0.5 / math.log10(2)], nan_ok=True)


def test_the_table_can_be_standard_output(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea: came in\n")
    options = ["--text", "my.txt", "--model", "small", "--table"]
    (trained.root / "out.csv").write_text("")
    printed = succeeded(run_stage("score", *options, "out.csv"))
    done = run_stage("score", *options, "-", "--page", "my.html")
    assert succeeded(done) == (trained.root / "out.csv").read_text()
    assert set(printed.splitlines()[:2]) < set(done.stderr.splitlines())
    assert (trained.root / "my.html").exists()
    assert not (trained.root / "-").exists()


@pytest.mark.parametrize(
    ("stage", "option", "complaint"),
    [
        ("score --text my.txt", "--page=no/x.html", "'--page': no: no such folder"),
        ("score --text my.txt", "--table=no/x.csv", "'--table': no: no such folder"),
        ("score --text my.txt", "--page=-", "'--page': name a file: standard output is not possible here"),
        ("ngrams --kind word", "--arpa=no/x.arpa", "'--arpa': no: no such folder"),
        ("ngrams --kind word", "--arpa=-", "'--arpa': name a file: standard output is not possible here"),
        ("score", "--by=chars", "'chars' is not one of"),
    ],
)
def test_files_that_cannot_be_written_are_refused(
    stage: str, option: str, complaint: str, run_stage: RunStage, trained: Layout
) -> None:
    (trained.root / "my.txt").write_text("the sea came in\n")
    refused(run_stage(*stage.split(), option), 2, complaint)
    assert not {"no", "-"} & {path.name for path in trained.root.iterdir()}


def test_files_that_cannot_be_read_are_refused(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea came in\n")
    (trained.root / "link").symlink_to("nowhere")
    for name, problem in {"missing": "no such file", "link": "no such file", "data": "not a regular file"}.items():
        refused(run_stage("score", "--text", name), 3, f"error: {name}: {problem}\n")
    refused(run_stage("score", "--text", "my.txt", "--arpa", "missing"), 3, "error: missing: no such file\n")
    shutil.rmtree(trained.root / "data")
    refused(run_stage("score", "--text", "my.txt", "--model", "small"), 3, "holds no finished run: run the pipeline")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow only names in Unicode")
def test_names_that_are_not_utf_8_are_shown_with_escapes(run_script: RunStage, trained: Layout) -> None:
    for name, content in {b"\xe9.txt": "the sea\n", b"\xe9.arpa": ARPA, b"other.txt": "the sea\n"}.items():
        (trained.root / os.fsdecode(name)).write_text(content)
    text, arpa = (os.fsdecode(option) for option in (b"--text=\xe9.txt", b"--arpa=\xe9.arpa"))
    assert "\\udce9.arpa: perplexity 3.162" in succeeded(run_script("score", text, arpa))
    assert "\\udce9.txt" in (trained.root / PAGE).read_text()
    printed = succeeded(run_script("score", text, arpa, "--text=other.txt", "--table=-"))
    assert printed.splitlines()[1].startswith("\\udce9.txt,0,the,the,0,3,")
    refused(run_script("score", "--text", os.fsdecode(b"\xe9")), 3, "\\udce9: no such file")


def test_what_to_do_without_memory_fits_the_stage(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea came in\n")
    with mock.patch("seqlm.score.user_text.score_texts", side_effect=MemoryError):
        result = run_stage("score", "--text", "my.txt", "--model", "small")
    refused(result, 5, "error: out of memory: use a shorter text, a smaller model, or a machine with more memory\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--model small --table x.csv", "--table needs --text"),
        ("--arpa my.txt", "--arpa needs --text"),
        ("--text my.txt --text my.txt", "the same text is given twice"),
        ("--text my.txt --text other.txt --page x.html", "--page shows one text: give one --text"),
        ("--text my.txt --model word-kneser-ney-3 --table x.csv --by char", "set by to word or line"),
        ("--text my.txt --model subword-uniform --table x.csv --space after", "set space to before"),
        ("--text my.txt --by char", "--by needs --table"),
        ("--text my.txt --arpa a/m.arpa --arpa b/m.arpa", "two models have the same name"),
        ("--text my.txt --arpa subword.arpa", "subword.arpa: over subwords, whose tokenizer an ARPA file lacks"),
    ],
)
def test_options_that_do_not_fit_are_named(options: str, complaint: str, run_stage: RunStage, trained: Layout) -> None:
    for name in ("my.txt", "other.txt"):
        (trained.root / name).write_text("the sea came in\n")
    for name in ("a/m.arpa", "b/m.arpa", "subword.arpa"):
        (trained.root / name).parent.mkdir(exist_ok=True)
        word = BYTE_TOKENS[200] if name == "subword.arpa" else "sea"
        (trained.root / name).write_text(f"\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3\t<unk>\n-0.3\t{word}\n\n\\end\\\n")
    refused(run_stage("score", *options.split()), 3 if "subword.arpa" in options else 2, complaint)
    assert not (trained.root / "x.csv").exists()
