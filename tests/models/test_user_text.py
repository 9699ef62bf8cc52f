"""A user's own text under trained models: `seqlm score`."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seqlm
from seqlm.core.layout import Layout
from small_runs import write_models, write_run
from smoke import ROOT, change_params
from stages_by_hand import Finished, prepare, refused, run_command, succeeded

PAGE = "surprisal.html"
Score = Callable[..., Finished]


@pytest.fixture
def trained(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


@pytest.fixture
def score(trained: Layout) -> Score:
    """Scores a text under models; ``name``: the text's file."""

    def run(text: str | bytes, *models: str, name: str = "my.txt") -> Finished:
        content = text.encode() if isinstance(text, str) else text
        (trained.root / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        chosen = [f"--name={model}" for model in models or ("small",)]
        return run_command(trained.root, "score", ".", name, *chosen, "--page", PAGE)

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
    assert " without unknown ones), " in printed
    assert "\nword-kneser-ney-2: 40% of the words are unknown" in printed
    page = (trained.root / PAGE).read_text()
    assert "my&lt;b&gt;.txt" in page
    assert "my<b>" not in page
    assert passages(trained)["models"].keys() == {"small", "word-kneser-ney-2"}


@pytest.mark.parametrize(
    ("content", "run", "code", "complaint"),
    [
        (b"the sea", "nope", 2, "error: there is no model 'nope': choose from small, words, char-uniform"),
        (b"...", "small", 3, "small: my.txt has no character that can be scored: use a longer text"),
        (b"sea", "words", 3, "my.txt has no word that can be scored: use a longer text"),
    ],
)
def test_texts_are_refused(content: bytes, run: str, code: int, complaint: str, score: Score, trained: Layout) -> None:
    write_run(trained, "words", token="word")
    refused(score(content, run), code, complaint)
    assert not (trained.root / PAGE).exists()


def test_the_changes_of_cleaning_are_stated(score: Score, trained: Layout) -> None:
    text = "The sea at Zürich: 120 euros\n"
    lines = succeeded(score(text)).splitlines()
    # ü, the colon and three digits.
    cleaned = "cleaned like the corpus, by preprocess.normalise: spaces replace 5 characters other than A to Z"
    assert lines[1] == f"small: {cleaned}"
    assert lines[2].startswith("small: 5.3% of the letters are not A-Z and were dropped")
    assert f'<p class="note">S{lines[1][1:]}.</p>' in (trained.root / PAGE).read_text()
    # Python says the same.
    remarks = seqlm.open(trained.root)["small"].score(text).remarks
    assert [f"small: {remark}" for remark in remarks] == lines[1:-1]
    assert succeeded(score("The sea\nat  noon\n")).startswith("small: perplexity")
    # What matters is how the corpus was cleaned, not how the next one will be.
    change_params(prepare(trained.root) / "params.yaml", {"preprocess.normalise": "none"})
    assert "\nsmall: cleaned like the corpus" in succeeded(score("the sea, 120 times\n"))


def test_a_long_text_is_scored_as_a_whole_and_shown_in_part(score: Score, trained: Layout) -> None:
    printed = succeeded(score("the sea came in " * 2000, "char-uniform", name="my.txt.gz"))
    assert "31,999 tokens" in printed
    assert "This page shows the first 20,000 of 31,999 characters." in (trained.root / PAGE).read_text()
    assert len(passages(trained)["text"]) == 20_000


def test_what_the_page_shows_by_hand(score: Score, trained: Layout) -> None:
    # An unknown word is shown with its spelling, and a first word that a network cannot predict without bits.
    write_run(trained, "words", token="word")
    succeeded(score("the zebra went", "word-uniform", "words"))
    uniform, network = (passages(trained)["models"][name] for name in ("word-uniform", "words"))
    zebra, went = [cost[1] for cost in uniform if cost][1:]
    assert zebra > 20 > went
    assert network[0] in (None, [3, None])
    assert f"/{PAGE}" in (ROOT / ".gitignore").read_text().splitlines()


def test_standard_input(trained: Layout) -> None:
    command = [sys.executable, "-m", "seqlm", "score", ".", "--name=char-uniform", "--page=my.html"]
    options = {"cwd": trained.root, "input": "sea sea\n", "capture_output": True, "text": True}
    finished: Finished = subprocess.run(command, **options)  # type: ignore[call-overload]
    assert succeeded(finished).startswith("char-uniform: perplexity 15.000 per char")
    assert "standard input" in (trained.root / "my.html").read_text()


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        ("missing", 3, "error: missing: no such file\n"),
        ("data", 3, "error: data: not a regular file\n"),
        ("my.txt --page data", 2, "'--page': File 'data' is a directory"),
        ("my.txt --by word --page my.html", 2, "error: --page has no effect with --by: leave one of them out\n"),
    ],
)
def test_options_that_do_not_fit_are_named(options: str, code: int, complaint: str, trained: Layout) -> None:
    (trained.root / "my.txt").write_text("the sea came in\n")
    refused(run_command(trained.root, "score", ".", *options.split(), "--name=small"), code, complaint)
