"""The score stage by hand, stored scores, the figures that sum them up, perplexity by context, and excerpts."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import small_training
from compiled_networks import strong_network
from encoded_corpora import build, write_splits
from made_scores import network, ngram, score, scored_text, stream_of
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.metrics import perplexity
from seqlm.models import ngrams
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import measure
from seqlm.networks.building import open_network
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.score import ngrams as scored_ngrams
from seqlm.pipeline.score import scores
from seqlm.pipeline.score.excerpts import passage, per_character
from seqlm.pipeline.score.heldout import Heldout
from seqlm.pipeline.score.scores import TRAIN_SUBSET, load_scores, load_scores_folder
from seqlm.vocab.corpus import SPLITS, load_split
from seqlm.vocab.kinds import BYTE_TOKENS, KINDS, token_kind
from seqlm.vocab.vocabulary import SplitInfo, Vocab
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
    for options in ((), ("--model", "small", "--kind", "char")):
        refused(run_stage("score", *options), 2, "pass --model or --kind\n")


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
    succeeded(run_stage("score", "--kind", "char"))
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
    change_params(layout.params, {"score.dynamic_counts": None})
    succeeded(run_stage("score", "--kind", "char"))
    assert names_in(layout.scores_of_ngrams("char")) == sorted(ngram_models("char"))


@pytest.mark.parametrize("kind", KINDS)
def test_ngram_models_are_scored(kind: str, run_stage: RunStage, layout: Layout) -> None:
    printed = succeeded(run_stage("score", "--kind", kind))
    line = rf"^{kind}-kneser-ney-2: \d\.\d+ bits per character on the validation set, {SECONDS}$"
    assert re.search(line, printed, re.MULTILINE)
    found = load_scores_folder(layout.scores_of_ngrams(kind))
    of_characters = [score for score in found if score.info.token != kind]
    assert [score.name for score in of_characters] == [WORD_TO_CHAR, f"{WORD_TO_CHAR}+dynamic"] * (kind == "word")
    for by_word in of_characters[:1]:
        assert (by_word.info.token, by_word.info.counted_token, by_word.info.order) == ("char", "word", 3)
        sizes = {split: len(load_split(layout.corpus("char"), split)) - 1 for split in SPLITS}
        assert {split: of_split["tokens"] for split, of_split in by_word.metrics.items()} == sizes
        # The text repeats nine words twenty times: soon every character is almost certain.
        assert by_word.nll["val"][-200:].mean() < 0.1
    scores = [score for score in found if score.info.token == kind]
    static = [score for score in scores if not score.info.dynamic]
    assert all(score.info.chosen_on_val for score in static if score.info.smoothing == "laplace")  # their epsilons
    assert {score.name for score in static} == set(ngram_models(kind))
    assert {(score.info.family, score.info.counted_token) for score in scores} == {("ngram", kind)}
    assert [set(score.metrics) for score in scores if score.info.dynamic] == [{"val", "test"}]
    diagnosed = {score.name for score in static if "positions" in score.metadata}
    assert diagnosed == set(ngram_models(kind) if kind == "char" else [])


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
    assert bool(list(layout.scores.rglob("*+dynamic"))) == (max_words >= 180)  # a long train has no dynamic counts


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


BIT = math.log(2)


def test_a_score_is_stored_with_all_that_is_known_of_the_model(tmp_path: Path) -> None:
    info = ngram("a+dynamic", dynamic=True, members=("a",), counted_token="word")
    stored = score(info, {"val": np.array([1.0, np.inf]), "test": np.array([0.5])}, {"positions": [1.5, None]})
    scores.save_scores(tmp_path / "a+dynamic", stored)
    loaded = load_scores(tmp_path / "a+dynamic")
    assert (loaded.info, loaded.metrics, loaded.metadata) == (info, stored.metrics, stored.metadata)
    assert {split: nll.tolist() for split, nll in loaded.nll.items()} == {"val": [1.0, np.inf], "test": [0.5]}
    assert isinstance(loaded.nll["val"].base, np.memmap)  # read when it is needed
    (tmp_path / "a+dynamic" / "val.npy").unlink()
    with pytest.raises(DataError, match=r"val\.npy: no such file"):
        load_scores(tmp_path / "a+dynamic")


def test_scores_that_are_no_longer_made_are_removed(tmp_path: Path) -> None:
    log: list[str] = []
    for names in (["a", "b"], ["c", "a"]):
        scores.save_scores_folder(tmp_path, [score(network(name), np.full(4, BIT)) for name in names], log.append)
    assert [score.name for score in load_scores_folder(tmp_path)] == ["a", "c"]
    assert log[-1].startswith("a: 1.000 bits per character on the validation set, ")


def test_metrics_by_hand() -> None:
    text = stream_of(np.array([1, 0, 1]), np.ones(2, np.int64), np.array([math.log(4), 0]), 4)
    metrics = measure(np.log([2.0, 8.0]), text)
    assert metrics["perplexity"] == pytest.approx(4)
    assert metrics["unknown_share"] == pytest.approx(1 / 2)
    # log2(2) + log2(8), and 2 bits for the unknown token: 6 bits for 4 characters.
    assert metrics["bits_per_character"] == pytest.approx(1.5)
    # Separators cost two bits more, and change neither the perplexity nor the nats.
    more = measure(np.log([2.0, 8.0]), replace(text, separator_nll=2 * BIT))
    assert more == metrics | {"bits_per_character": pytest.approx(2)}


@pytest.mark.parametrize(
    ("nll", "finite", "reason"),
    [
        ([1.0, np.inf], set(), "1 tokens have probability 0, 0 none; inf nats per token"),
        ([1.0, np.nan], set(), "0 tokens have probability 0, 1 none; nan nats per token"),
        # exp(800) is too large for a number; 800 nats are 1154 bits.
        ([800.0, 800.0], {"nats_per_token", "bits_per_character"}, "0 tokens have probability 0, 0 none; 800 nats"),
    ],
)
def test_infinite_values_have_a_reason(nll: list[float], finite: set[str], reason: str) -> None:
    metrics = measure(np.array(nll), scored_text(2))
    assert {key for key in ("nats_per_token", "perplexity", "bits_per_character") if metrics[key] is not None} == finite
    assert metrics["reason"].startswith(reason)


IDS = np.random.default_rng(0).integers(0, 5, 400)
VOCAB = Vocab("char", list("?abcd"), [0] * 5, "", {"train": SplitInfo(400, 400, 0, "")})


def test_a_text_of_one_window_gives_the_surprisal_at_each_position() -> None:
    model = StaticNetwork(network("m"), VOCAB, strong_network(5))
    expected = [perplexity(value, 1) for value in stream_nll(strong_network(5), IDS[:30])]
    assert scores.perplexity_by_position(model, IDS[:30]) == pytest.approx(expected, rel=1e-5)


def test_windows_are_spread_over_all_of_the_text() -> None:
    """The first windows repeat one token; later ones do not, and the model knows only the first ones."""
    model = NGram.of(KneserNey(count_ngrams(np.ones(400, np.int64), 5, 2), 2), VOCAB)
    ones = np.ones(130 + 2 * scores.MAX_WINDOWS, np.int64)
    mixed = np.append(ones, IDS[IDS != 1])
    assert len(scores.perplexity_by_position(model, ones)) == 128
    assert max(scores.perplexity_by_position(model, ones)) * 1.2 < min(scores.perplexity_by_position(model, mixed))


SUBWORD = token_kind("subword")
# é is C3 A9 in UTF-8.
FIRST, SECOND = BYTE_TOKENS[0xC3], BYTE_TOKENS[0xA9]


def test_the_bits_of_a_subword_are_shared_evenly_by_its_characters() -> None:
    # The first subword has no surprisal; " sea" has 4 characters and 6 bits, é costs 5 + 2 bits in its two bytes.
    found = passage(SUBWORD, ["the", " sea", FIRST, SECOND], np.array([6, 5, 2]) * BIT, 100)
    assert found["tokens"] == ["t", "h", "e", " ", "s", "e", "a", "é"]
    assert found["bits"] == [None, None, None, 1.5, 1.5, 1.5, 1.5, 7.0]
    assert found["separator"] == ""
    # The first token may be a byte of a character.
    assert passage(SUBWORD, [FIRST, SECOND, "a"], np.array([5, 1]) * BIT, 9)["bits"] == [5.0, 1.0]


def test_bytes_that_are_no_character_are_shown_as_a_replacement_character() -> None:
    # A text may end in the middle of a character.
    found = passage(SUBWORD, ["a", FIRST], np.array([3.0]) * BIT, 100)
    assert (found["tokens"], found["bits"]) == (["a", "\ufffd"], [None, 3.0])
    assert len(per_character(SUBWORD, [SECOND, SECOND, "a"], [1.0, 1.0, 1.0])[1]) == len("\ufffd\ufffda")


def test_only_the_first_token_is_not_scored() -> None:
    word = token_kind("word")
    shown = passage(word, ["the", "sea", "is", "there"], np.array([np.nan, np.inf, 2 * BIT]), 100)
    assert shown["bits"] == [None, "infinite", "infinite", 2.0]
    assert passage(word, [], np.empty(0), 100)["bits"] == []
