"""The command ``seqlm``: a user's own text under trained models, and models of the user's own texts."""

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
    layout = write_models(tmp_path)
    write_run(layout, "words", token="word")
    return layout


@pytest.fixture
def score(trained: Layout) -> Score:
    """Scores a text under models; ``name``: the text's file."""

    def run(text: str, *models: str, name: str = "my.txt") -> Finished:
        (trained.root / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
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


def test_a_model_is_fitted_scores_and_generates(tmp_path: Path) -> None:
    text, settings = "the sea came in and the sea went out\n" * 12, {"num_hiddens": 8, "num_epochs": 2, "num_steps": 5}
    (tmp_path / "my.txt").write_text(text)
    options = [f"--set={name}={value}" for name, value in settings.items()]
    succeeded(run_command(tmp_path, "fit", "my.txt", "--output", "my-lstm", "--quiet", *options))
    fitted = seqlm.fit_network(text, progress=False, **settings)
    assert seqlm.open(tmp_path / "my-lstm")["lstm"].score("the sea") == fitted.score("the sea")
    rows = succeeded(run_command(tmp_path, "score", "my-lstm", "my.txt", "--by", "word")).splitlines()
    assert rows[0] == "position,text,bits,unknown,reason"
    assert len(rows) == 1 + len(text.split())
    generated = succeeded(run_command(tmp_path, "generate", "my-lstm", "the ", "--num-preds", "9", "--seed", "1"))
    assert generated == f"the {fitted.generate('the ', 9, seed=1)}\n"
    (tmp_path / "more.txt").write_text("the tide\n")
    options = ["--model", "kneser-ney", "--order", "2", "--output", "kn"]
    succeeded(run_command(tmp_path, "fit", "my.txt", "more.txt", *options))
    assert "tide" in seqlm.open(tmp_path / "kn")["word-kneser-ney-2"].vocab
    succeeded(run_command(tmp_path, "arpa", "kn", "kn.arpa"))
    printed = [succeeded(run_command(tmp_path, "score", model, "my.txt")) for model in ("kn", "kn.arpa")]
    assert printed[0].split("perplexity")[1][:8] == printed[1].split("perplexity")[1][:8]


def test_the_models_of_a_run_are_exported(trained: Layout) -> None:
    assert run_command(trained.root, "--version").stdout == f"seqlm {seqlm.__version__}\n"
    assert run_command(trained.root).stdout.startswith("Usage: seqlm")
    printed = succeeded(run_command(trained.root / "data", "export", "out", "--root", ".."))
    assert printed.endswith("seqlm.open('out') reads them\n")
    here, there = seqlm.open(trained.root / "data" / "out"), seqlm.open(trained.root)
    assert list(here) == list(there)
    for name in ("small", "subword-kneser-ney-3", "char-by-word-kneser-ney-3"):
        assert here[name].score("the sea") == there[name].score("the sea")


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ("score . my.txt --name nope", 2, "error: there is no model 'nope': choose from small, words, char-uniform"),
        ("score . dots.txt --name small", 3, "small: dots.txt has no character that can be scored: use a longer text"),
        ("score . word.txt --name words", 3, "word.txt has no word that can be scored: use a longer text"),
        ("score . missing --name small", 3, "error: missing: no such file\n"),
        ("score . data --name small", 3, "error: data: not a regular file\n"),
        ("score . my.txt --name small --page data", 2, "'--page': File 'data' is a directory"),
        ("score . my.txt --by word --page my.html", 2, "error: --page has no effect with --by: leave one of them out"),
        ("export out --model x", 2, "there is no model 'x'"),
        ("export data", 2, "error: data: exists: name a new folder\n"),
        ("fit my.txt --output my.txt/x", 5, "my.txt/x: cannot be written: Not a directory"),
        ("fit my.txt --output x --by ?", 2, "by = '?': should be"),
        ("fit my.txt --output mine --by ?", 2, "by = '?': should be"),
        ("fit my.txt --output x --order 3", 2, "order: unknown setting\n"),
        ("fit my.txt --output mine --order 3", 2, "order: unknown setting\n"),
        ("fit my.txt --output x --model laplace --num-threads 1", 2, "--num-threads has no effect on this kind"),
        ("fit my.txt --output x --set dropout", 2, "--set dropout: write NAME=VALUE"),
        ("fit my.txt --output x --set dropout=[", 2, "--set dropout=[: the value is not YAML"),
        ("fit my.txt --output x --val 2", 2, "val = 2.0: "),
        ("fit my.txt --output x --val no.txt", 3, "error: no.txt: empty: use another text\n"),
        ("arpa . out.arpa --name words", 2, "error: words: only Kneser-Ney models have the form of an ARPA file\n"),
        ("generate my.txt the --name words", 2, "error: my.txt: an ARPA file has one model: leave out --name\n"),
        *(
            (f"fit my.txt --output x --set {name}=laplace", 2, f"--set {name}: an argument or an option of its own")
            for name in ("texts", "smoothing", "progress", "model", "val")
        ),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    arguments: str, code: int, complaint: str, trained: Layout
) -> None:
    for name, text in {"my.txt": "the sea came in\n" * 9, "dots.txt": "...", "word.txt": "sea", "no.txt": ""}.items():
        (trained.root / name).write_text(text)
    (trained.root / "mine").mkdir()
    before = set(trained.root.iterdir())
    refused(run_command(trained.root, *arguments.split()), code, complaint)
    assert set(trained.root.iterdir()) == before
