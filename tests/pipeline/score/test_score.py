"""The score stage by hand, and what it stores."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import small_training
from encoded_corpora import build, write_splits
from seqlm.core.layout import Layout
from seqlm.models import ngrams
from seqlm.networks.building import open_network
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.score import ngrams as scored_ngrams
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import TRAIN_SUBSET, load_scores, load_scores_folder
from seqlm.vocab.corpus import SPLITS, load_split
from seqlm.vocab.kinds import KINDS
from seqlm.vocab.vocabulary import Vocab
from small_runs import LINES, ngram_models, replace_split, write_models, write_run
from smoke import change_params
from stages_by_hand import RunStage, refused, run_command, succeeded

SMALL_DYNAMIC = {"score.dynamic.lrs": [0.001], "score.dynamic.decays": [0.01]}
WORD_TO_CHAR = "char-by-word-kneser-ney-3"
SECONDS = r"\d+\.\d s"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


def names_in(folder: Path) -> list[str]:
    return [score.name for score in load_scores_folder(folder)]


def test_a_run_is_scored_on_every_split_static_and_dynamic(run_stage: RunStage, layout: Layout) -> None:
    change_params(layout.params, SMALL_DYNAMIC)
    printed = succeeded(run_stage("score", "--model", "small"))
    line = r"^small\+{}: \d\.\d+ bits per character on the validation set{}$"
    assert re.search(line.format("dynamic, lr 0.001, decay 0.01", ""), printed, re.MULTILINE)
    assert re.search(line.format("dynamic", f", {SECONDS}"), printed, re.MULTILINE)
    static, dynamic = load_scores_folder(layout.scores_of_run("small"))
    network = open_network(layout.run("small"), "small", Vocab.load(layout.vocab("char")).key, "cpu", 1)
    for split in SPLITS:
        assert static.nll[split] == pytest.approx(stream_nll(network, load_split(layout.corpus("char"), split)))
    assert set(static.metadata) == {"positions"}
    assert set(dynamic.nll) == {"val", "test"}
    assert (dynamic.name, dynamic.info.dynamic, dynamic.info.members) == ("small+dynamic", True, ("small",))
    assert dynamic.metadata["choices"] == {"dynamic_lr": 0.001, "dynamic_decay": 0.01}
    # Each token is a character.
    assert static.metrics["test"]["bits_per_character"] == pytest.approx(static.nll["test"].mean() / np.log(2))
    # A limit that train does not reach is none.
    write_run(layout, "small", max_tokens=10**6)
    succeeded(run_stage("score", "--model", "small"))
    assert names_in(layout.scores_of_run("small")) == ["small", "small+dynamic"]
    refused(run_stage("score", "--model", "nope"), 2, "there is no trained run 'nope', only small")


@pytest.mark.parametrize("arguments", [("--model", "small"), ("--kind", "char"), ("--kind", "word")])
def test_only_scores_on_test_and_diagnostics_depend_on_test(
    arguments: tuple[str, ...], run_stage: RunStage, layout: Layout
) -> None:
    """Models that keep learning do so from train, with roots of gradients on train, whatever test is."""
    change_params(layout.params, SMALL_DYNAMIC)
    found = []
    for seed in (None, 0):
        for kind in KINDS if seed is not None else ():
            replace_split(layout.corpus(kind), "test", np.random.default_rng(seed).permutation)
        succeeded(run_stage("score", *arguments))
        found.append([load_scores(path.parent) for path in sorted(layout.scores.rglob("score.json"))])
    assert any(score.info.dynamic for score in found[0])
    for before, after in zip(*found, strict=True):
        for split in before.nll.keys() - {"test"}:
            assert np.array_equal(before.nll[split], after.nll[split]), (before.name, split)
        if "positions" in before.metadata and before.info.order not in (0, 1):
            assert before.metadata["positions"] != after.metadata["positions"], before.name


def test_ngram_models_of_the_beginning_of_train_are_scored(
    run_stage: RunStage, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngrams, "SMALL_SAMPLE_TOKENS", 60)
    assert run_stage("score", "--kind", "char").returncode == 0
    found = {score.name: score for score in load_scores_folder(layout.scores_of_ngrams("char")) if "@" in score.name}
    assert sorted(found) == [f"char-kneser-ney-{order}@60" for order in (1, 3, 5)]
    score, train = found["char-kneser-ney-3@60"], load_split(layout.corpus("char"), "train")
    vocab = Vocab.load(layout.vocab("char"), "char")
    model = KneserNey(count_ngrams(train[:60], len(vocab), 3), 3, unknown="good_turing")
    for split, nll in score.nll.items():
        assert nll == pytest.approx(token_nll(model, load_split(layout.corpus("char"), split)))
    assert score.metrics[TRAIN_SUBSET]["nats_per_token"] == pytest.approx(token_nll(model, train[:60]).mean())
    assert (score.info.train_chars, score.info.order, score.info.dynamic) == (60, 3, False)
    monkeypatch.setattr(ngrams, "SMALL_SAMPLE_TOKENS", len(train))
    assert run_stage("score", "--kind", "char").returncode == 0
    assert not [name for name in names_in(layout.scores_of_ngrams("char")) if "@" in name]


@pytest.mark.parametrize("kind", KINDS)
def test_ngram_models_are_scored(kind: str, run_stage: RunStage, layout: Layout) -> None:
    printed = succeeded(run_stage("score", "--kind", kind))
    line = rf"^{kind}-kneser-ney-2: \d\.\d+ bits per character on the validation set, {SECONDS}$"
    assert re.search(line, printed, re.MULTILINE)
    scores = [score for score in load_scores_folder(layout.scores_of_ngrams(kind)) if score.info.token == kind]
    static = [score for score in scores if not score.info.dynamic]
    assert all(score.info.chosen_on_val for score in static if score.info.smoothing == "laplace")  # their epsilons
    assert {score.name for score in static} == set(ngram_models(kind))
    assert {(score.info.family, score.info.counted_token) for score in scores} == {("ngram", kind)}
    assert [set(score.metrics) for score in scores if score.info.dynamic] == [{"val", "test"}]
    diagnosed = {score.name for score in static if "positions" in score.metadata}
    assert diagnosed == set(ngram_models(kind) if kind == "char" else [])


def test_a_model_over_words_is_scored_over_characters(run_stage: RunStage, layout: Layout) -> None:
    succeeded(run_stage("score", "--kind", "word"))
    scores = load_scores_folder(layout.scores_of_ngrams("word"))
    of_characters = [score for score in scores if score.info.token == "char"]
    assert [score.name for score in of_characters] == [WORD_TO_CHAR, f"{WORD_TO_CHAR}+dynamic"]
    static = of_characters[0]
    assert (static.info.counted_token, static.info.order) == ("word", 3)
    assert {split: of_split["tokens"] for split, of_split in static.metrics.items()} == {
        split: len(load_split(layout.corpus("char"), split)) - 1 for split in SPLITS
    }
    # The text repeats nine words twenty times: soon every character is almost certain.
    assert static.nll["val"][-200:].mean() < 0.1


@pytest.mark.parametrize(
    ("max_words", "first_words", "reason"),
    [
        (179, "", "train has 180 words, more than 179"),
        (180, "quite other words\n" * 20, "87% of the words of the validation set are unknown"),
    ],
)
def test_a_model_over_too_many_or_unknown_words_is_not_read_as_one_over_characters(
    max_words: int, first_words: str, reason: str, run_stage: RunStage, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_ngrams, "MAX_TOKENS", max_words)
    train, _, test = (layout.split(split).read_text() for split in SPLITS)
    texts = write_splits(layout.splits, train, first_words + LINES, test)
    for kind in ("word", "char"):
        build(texts, layout.corpus(kind), kind, " ")
    printed = succeeded(run_stage("score", "--kind", "word"))
    assert f"the model over words is not read as one over characters: {reason}\n" in printed
    assert WORD_TO_CHAR not in names_in(layout.scores_of_ngrams("word"))


def test_a_long_train_has_no_dynamic_counts(
    run_stage: RunStage, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_ngrams, "MAX_TOKENS", 179)
    succeeded(run_stage("score", "--kind", "word"))
    assert not list(layout.scores.rglob("*+dynamic"))
    change_params(layout.params, {"score.dynamic_counts": None})
    succeeded(run_stage("score", "--kind", "char"))
    assert not list(layout.scores.rglob("*+dynamic"))


def test_options_that_do_not_go_together(run_stage: RunStage) -> None:
    for options in ("", "--model small --kind char"):
        refused(run_stage("score", *options.split()), 2, "pass --model or --kind\n")


TEXT = "the sea came in and the sea went out\nand in came the tide\n" * 30


def test_a_run_over_subwords(run_stage: RunStage, tmp_path: Path) -> None:
    layout = small_training.prepare_stage(tmp_path, TEXT, token="subword", max_tokens=200)
    for stage, *arguments in (("train", "--model", "x"), ("score", "--model", "x")):
        succeeded(run_stage(stage, *arguments))
    (scores,) = load_scores_folder(layout.scores_of_run("x"))
    assert 0 < scores.metrics["test"]["bits_per_character"] < 8
    # The run saw 200 tokens of train; the characters of all but the first are scored.
    vocab, beginning = (Vocab.load(layout.vocab("subword")), Heldout(layout, "subword").head("train", 200))
    seen = vocab.join(vocab.decode(load_split(layout.corpus("subword"), "train")[:200].tolist()))
    assert TEXT.replace("\n", "").startswith(seen)
    (first,) = vocab.decode(beginning.input_ids[:1].tolist())
    assert beginning.num_chars == len(seen) - vocab.token_kind.length(first)
    score = load_scores(layout.scores_of_run("x") / "x")
    assert score.metrics[TRAIN_SUBSET]["tokens"] == 199
    assert score.info.train_chars == pytest.approx(len(seen), rel=0.05)

    (tmp_path / "my.txt").write_text("The sea, and ïn it\n")
    printed = succeeded(run_command(tmp_path, "score", ".", "my.txt", "--name", "x", "--page", "surprisal.html"))
    assert re.search(r"x: perplexity \d+\.\d+ per subword, \d+\.\d+ bits per character, .* 0\.0% of them", printed)
    shown = re.search(r'id="passages">(.*?)</script>', (tmp_path / "surprisal.html").read_text())
    assert shown
    assert json.loads(shown[1])["text"] == " the sea and n it"  # as if it followed a space
