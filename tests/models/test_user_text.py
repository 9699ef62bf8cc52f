"""A user's own text under trained models: `score.py --text`."""

import gzip
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

import seqlm
from seqlm.core.layout import Layout
from seqlm.core.progress import quantity
from seqlm.vocab.subwords import BYTE_TOKENS
from small_runs import write_models, write_run
from smoke import ROOT, change_params
from stages_by_hand import Finished, RunStage, prepare, refused, succeeded

PAGE = "surprisal.html"
ARPA = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t<unk>\n-0.5\tsea\n\n\\end\\\n"
MARKED = "\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-0.5\t</s>\n-0.4\tthe\n-0.3\tsea\n\n\\end\\\n"
COLUMNS = ["position", "text", "reason", "space"]
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


def passages(layout: Layout) -> dict[str, Any]:
    """Return what the page's surprisal view shows."""
    data = re.search(r'id="passages">(.*?)</script>', (layout.root / PAGE).read_text())
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_the_text_is_scored_and_shown(score: Score, trained: Layout) -> None:
    text = "The SEA, <i>came</i>!\n"
    printed = succeeded(score(text, "small", "word-kneser-ney-2", name="my<b>.txt"))
    models = seqlm.open(trained.root)
    expected = models["small"].score("the sea i came i")
    shown = f"perplexity {expected.perplexity:.3f} per char, {expected.bits_per_character:.3f} bits per character"
    assert f"small: {shown}, 16 tokens, 0.0% of them unknown" in printed
    # Of the five words, "the sea i came i", train lacks both i.
    assert "word-kneser-ney-2: perplexity" in printed
    assert "5 tokens, 40.0% of them unknown" in printed
    page = (trained.root / PAGE).read_text()
    assert "my&lt;b&gt;.txt" in page
    assert "my<b>" not in page
    assert passages(trained)["models"].keys() == {"small", "word-kneser-ney-2"}


@pytest.mark.parametrize(
    ("content", "run", "code", "complaint"),
    [
        (b"the sea", "nope", 2, "error: there is no model 'nope': choose from small, words, char-uniform"),
        (b"12345", "small", 3, "my.txt: has no letters A-Z: use another text, or set preprocess.normalise: none"),
        (b"a", "small", 3, "my.txt: has only 1 character after cleaning"),
        (b"sea", "words", 3, "the text has only 1 word that can be scored: use a longer text"),
        (b"sea \xe9", "small", 3, "not UTF-8 at byte 4"),
    ],
)
def test_texts_are_refused(content: bytes, run: str, code: int, complaint: str, score: Score, trained: Layout) -> None:
    write_run(trained, "words", token="word")
    refused(score(content, run), code, complaint)
    assert not (trained.root / PAGE).exists()


@pytest.mark.parametrize("text", ["se", "the sea came in"])
def test_a_character_costs_as_much_in_a_short_text_as_in_a_long_one(text: str, score: Score, trained: Layout) -> None:
    bits = math.log2(len(seqlm.open(trained.root)["char-uniform"].vocab))
    printed = succeeded(score(text, "char-uniform"))
    assert f"{bits:.3f} bits per character, {quantity(len(text), 'token')}," in printed


def test_the_changes_of_cleaning_are_stated(score: Score, run_stage: RunStage, trained: Layout) -> None:
    text = "The sea at Zürich: 120 euros\n"
    lines = succeeded(score(text)).splitlines()
    # ü, the colon and three digits.
    assert lines[0] == "cleaned like the corpus, by preprocess.normalise: spaces replace 5 characters other than A-Z"
    assert lines[1].startswith("5.3% of the letters are not A-Z and were dropped")
    assert f'<p class="note">C{lines[0][1:]}.</p>' in (trained.root / PAGE).read_text()
    # Python says the same.
    assert list(seqlm.open(trained.root)["small"].score(text).remarks) == lines[:2]
    assert succeeded(score("The sea\nat  noon\n")).startswith("small: perplexity")
    # An ARPA file has no corpus.
    (trained.root / "x.arpa").write_text(ARPA)
    (trained.root / "my.txt").write_text("the sea, 120 times\n")
    printed = succeeded(run_stage("score", "--text", "my.txt", "--arpa", "x.arpa"))
    assert re.match(r"x\.arpa: .* 4 tokens, 100\.0% of them unknown", printed)
    # What matters is how the corpus was cleaned, not how the next one will be.
    change_params(trained.params, {"preprocess.normalise": "none"})
    assert succeeded(score("the sea, 120 times\n")).startswith("cleaned like the corpus")


def test_a_long_text_is_scored_as_a_whole_and_shown_in_part(score: Score, trained: Layout) -> None:
    printed = succeeded(score("the sea came in " * 2000, "char-uniform", name="my.txt.gz"))
    remark = "the page shows the first 20,000 of 31,999 characters"
    assert "31,999 tokens" in printed
    assert printed.startswith(remark)
    assert f"T{remark[1:]}." in (trained.root / PAGE).read_text()
    assert len(passages(trained)["text"]) == 20_000


def test_what_the_page_shows_by_hand(run_stage: RunStage, score: Score, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea\n\nthe\n")
    (trained.root / "marks.arpa").write_text(MARKED)
    succeeded(run_stage("score", "--text", "my.txt", "--arpa", "marks.arpa"))
    # Sentence marks are not shown but belong to the word before them; an empty line is a sentence too.
    decimals = [[3, 0.4], None, [3, 0.3 + 2 * 0.5], None, [3, 0.4 + 0.5]]
    found = passages(trained)
    assert found["text"] == "the sea the"
    expected = [each and [3, round(each[1] / math.log10(2), 1)] for each in decimals]
    assert found["models"]["marks.arpa"] == expected
    # An unknown word is shown with its spelling, and a first word that a network cannot predict without bits.
    write_run(trained, "words", token="word")
    succeeded(score("the zebra went", "word-uniform", "words"))
    uniform, network = (passages(trained)["models"][name] for name in ("word-uniform", "words"))
    zebra, went = [cost[1] for cost in uniform if cost][1:]
    assert zebra > 20 > went
    assert network[0] in (None, [3, None])
    assert f"/{PAGE}" in (ROOT / ".gitignore").read_text().splitlines()


def test_several_texts_become_one_table(run_stage: RunStage, trained: Layout) -> None:
    write_run(trained, "words", token="word")
    (trained.root / "a.txt").write_text("The sea\ncame -- in\n")
    (trained.root / "b.txt.gz").write_bytes(gzip.compress(b"the land\n"))
    options = ["--text", "a.txt", "--text", "b.txt.gz", "--model", "small", "--model", "words"]
    printed = succeeded(run_stage("score", *options, "--table", "out.csv", "--space", "after"))
    assert printed.startswith("a.txt:\n  cleaned like the corpus")
    assert "the table, bits by word, blanks added to the word after which they come: out.csv" in printed
    assert not (trained.root / PAGE).exists()
    table = pd.read_csv(trained.root / "out.csv", keep_default_na=False)
    assert list(table) == ["file", *COLUMNS, "small", "words"]
    assert table["text"].tolist() == ["the", "sea", "came", "", "in", "the", "land"]
    first = "not scored: the model has no distribution of a first token"
    assert table["reason"].tolist() == [first, "", "", "removed by cleaning", "", first, ""]
    assert (table["words"] == "").tolist() == [reason != "" for reason in table["reason"]]
    # The columns add up to the totals: fifteen characters of a.txt, and eight of b.txt.gz.
    bits = [float(found) for found in re.findall(r"small: .*?([\d.]+) bits per character", printed)]
    small = pd.to_numeric(table["small"])
    for name, of_text, num_chars in zip(("a.txt", "b.txt.gz"), bits, (15, 8), strict=True):
        assert small[table["file"] == name].sum() == pytest.approx(of_text * num_chars, abs=0.01)


def test_standard_input_standard_output_and_an_arpa_file(trained: Layout) -> None:
    (trained.root / "x.arpa").write_text(ARPA)
    command = [sys.executable, str(ROOT / "stages" / "score.py"), "--text=-", "--arpa=x.arpa", "--page=my.html"]

    def done(table: str) -> Finished:
        options = {"cwd": prepare(trained.root), "input": "sea sea\n", "capture_output": True, "text": True}
        found: Finished = subprocess.run([*command, f"--table={table}"], **options)  # type: ignore[call-overload]
        return found

    assert succeeded(done("out.csv")).startswith("x.arpa: perplexity 3.162 per word")
    table = pd.read_csv(trained.root / "out.csv")
    assert list(table) == [*COLUMNS, "x.arpa"]
    assert table["x.arpa"].tolist() == pytest.approx([0.5 / math.log10(2)] * 2)  # log10 p = -0.5
    assert succeeded(done("-")) == (trained.root / "out.csv").read_text()
    assert (trained.root / "my.html").exists()
    assert not (trained.root / "-").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow only names in Unicode")
def test_names_that_are_not_utf_8_are_shown_with_escapes(run_script: RunStage, trained: Layout) -> None:
    for name, content in {b"\xe9.txt": "the sea\n", b"\xe9.arpa": ARPA}.items():
        (trained.root / os.fsdecode(name)).write_text(content)
    text, arpa = (os.fsdecode(option) for option in (b"--text=\xe9.txt", b"--arpa=\xe9.arpa"))
    assert "\\udce9.arpa: perplexity" in succeeded(run_script("score", text, arpa))
    assert "\\udce9.txt" in (trained.root / PAGE).read_text()
    refused(run_script("score", "--text", os.fsdecode(b"\xe9")), 3, "\\udce9: no such file")


def test_what_to_do_without_memory_fits_the_stage(run_stage: RunStage, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea came in\n")
    with mock.patch("seqlm.score.user_text.score_texts", side_effect=MemoryError):
        result = run_stage("score", "--text", "my.txt", "--model", "small")
    refused(result, 5, "error: out of memory: use a shorter text, a smaller model, or a machine with more memory\n")


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        ("--model small --table x.csv", 2, "--table needs --text"),
        ("--arpa my.txt", 2, "--arpa needs --text"),
        ("--text my.txt --text my.txt", 2, "the same text is given twice"),
        ("--text my.txt --text other.txt --page x.html", 2, "--page shows one text: give one --text"),
        ("--text my.txt --model small --model word-uniform --table x.csv --by token", 2, "set by to word"),
        ("--text my.txt --model subword-uniform --table x.csv --space after", 2, "set space to before"),
        ("--text my.txt --by token", 2, "--by needs --table"),
        ("--text my.txt --by line --table x.csv", 2, "'line' is not one of"),
        ("--text my.txt --arpa a/m.arpa --arpa b/m.arpa", 2, "two models have the same name"),
        ("--text my.txt --arpa subword.arpa", 3, "subword.arpa: over subwords, whose tokenizer an ARPA file lacks"),
        ("--text my.txt --arpa missing", 3, "error: missing: no such file\n"),
        ("--text missing", 3, "error: missing: no such file\n"),
        ("--text data", 3, "error: data: not a regular file\n"),
        ("--text my.txt --page no/x.html", 2, "'--page': no: no such folder"),
        ("--text my.txt --table no/x.csv", 2, "'--table': no: no such folder"),
        ("--text my.txt --page -", 2, "'--page': name a file: standard output is not possible here"),
    ],
)
def test_options_that_do_not_fit_are_named(
    options: str, code: int, complaint: str, run_stage: RunStage, trained: Layout
) -> None:
    for name in ("my.txt", "other.txt"):
        (trained.root / name).write_text("the sea came in\n")
    for name in ("a/m.arpa", "b/m.arpa", "subword.arpa"):
        (trained.root / name).parent.mkdir(exist_ok=True)
        word = BYTE_TOKENS[200] if name == "subword.arpa" else "sea"
        (trained.root / name).write_text(ARPA.replace("sea", word).replace("-1", "-0.3").replace("-0.5", "-0.3"))
    refused(run_stage("score", *options.split()), code, complaint)
    assert not {"no", "-", "x.csv"} & {path.name for path in trained.root.iterdir()}
