"""The score stage by hand, and what it stores."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from seqlm.core.errors import DataError
from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.core.processes import default_processes
from seqlm.core.settings import load
from seqlm.rnn.building import load_network
from seqlm.rnn.scoring import stream_nll
from seqlm.score.settings import ScoreParams
from seqlm.score.store import BEST_OF_KIND, Score, load_score, save_score
from seqlm.score.word_to_char.scoring import score_by_characters
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.kinds.registry import KINDS
from small_runs import LINES, write_models
from smoke import ROOT, change_params
from stages_by_hand import RunStage
from subwords import build

SMALL_DYNAMIC = {"score.dynamic.lrs": [0.001], "score.dynamic.decays": [0.01], "score.dynamic.segments": 5}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


def test_a_run_is_scored_on_every_split_and_as_it_learns_on(run_stage: RunStage, layout: Layout) -> None:
    change_params(layout.params, SMALL_DYNAMIC)
    result = run_stage("score", "--run", "small")
    assert result.returncode == 0, result.stderr
    score = load_score(layout.scores_of_run("small"), "small")
    network = load_network(layout.run("small"), "small", torch.device("cpu"))
    for split in SPLITS:
        assert score.nats[split] == pytest.approx(stream_nll(network, load_split(layout.corpus("char"), split)))
    assert set(score.about) == {"positions", "calibration"}
    adapted = load_score(layout.dynamic_scores_of_run("small"), "small+dynamic")
    assert set(adapted.nats) == {"val", "test"}
    assert adapted.about["choices"] == {"dynamic_lr": 0.001, "dynamic_decay": 0.01}
    headline = json.loads(layout.reports("score", "small", "metrics.json").read_text())
    assert set(headline) == {"val_bits", "val_perplexity", "test_bits", "test_perplexity"}
    assert headline["test_perplexity"] == pytest.approx(np.exp(score.nats["test"].mean()))


def test_dynamic_evaluation_can_be_left_out(run_stage: RunStage, layout: Layout) -> None:
    change_params(layout.params, {"score.dynamic": None})
    assert run_stage("score", "--run", "small").returncode == 0
    assert not layout.dynamic_scores_of_run("small").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_the_models_that_count_is_the_strongest(kind: str, run_stage: RunStage, layout: Layout) -> None:
    result = run_stage("score", "--kind", kind)
    assert result.returncode == 0, result.stderr
    folders = list(layout.scores_of_ngrams(kind).iterdir())
    scores = [load_score(folder, folder.name) for folder in folders]
    counting_on = [score for score in scores if score.adapts]
    assert [set(score.nats) for score in counting_on] == [{"val", "test"}]
    # Uniform, and orders 1 to 3 of both smoothings.
    assert len(scores) == 7 + 1
    (strongest,) = (score for score in scores if score.about.get(BEST_OF_KIND))
    assert strongest.nats["val"].sum() == min(score.nats["val"].sum() for score in scores if not score.adapts)
    # Diagnosed are models of characters.
    assert ("positions" in strongest.about) == (kind == "char")


@pytest.mark.parametrize("dynamic", [True, False])
def test_the_model_over_words_is_scored_as_one_over_characters(
    dynamic: bool, run_stage: RunStage, layout: Layout
) -> None:
    if not dynamic:
        change_params(layout.params, {"score.dynamic_counts": None})
    result = run_stage("score", "--by-characters")
    assert result.returncode == 0, result.stderr
    still, *learning = sorted(layout.scores_by_characters.iterdir())
    assert [still.name, *(path.name for path in learning)] == (
        ["char-by-word-kneser-ney-3", *(["char-by-word-kneser-ney-3+dynamic"] if dynamic else [])]
    )
    score = load_score(still, still.name)
    assert {split: len(nats) for split, nats in score.nats.items()} == {
        split: len(load_split(layout.corpus("char"), split)) - 1 for split in SPLITS
    }
    # Twenty times the same nine words: soon hardly a character is in doubt.
    assert score.nats["val"][-200:].mean() < 0.1
    assert score.kind == "char"


@pytest.mark.skipif(default_processes() == 1, reason="only Linux copies processes")
def test_any_number_of_processes_reads_words_the_same(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    params, found = load(ROOT / "params.yaml", "score", ScoreParams), []
    for num_processes in (1, 2):
        monkeypatch.setattr("seqlm.score.word_to_char.scoring.default_processes", partial(int, num_processes))
        score_by_characters(layout, params, lambda _: None)
        found.append({path: sha256_of_file(path) for path in layout.scores_by_characters.rglob("*.npy")})
    assert len(found[0]) == 5
    assert found[0] == found[1]


def with_few_words(layout: Layout) -> None:
    change_params(layout.params, {"score.by_characters": 179})


def with_unknown_words(layout: Layout) -> None:
    texts = {split: layout.split(split) for split in SPLITS}
    texts["val"].write_text("quite other words\n" * 20 + LINES, encoding="utf-8")
    for kind in ("word", "char"):
        build(texts, layout.corpus(kind), kind, " ")


@pytest.mark.parametrize("make_unfit", [with_few_words, with_unknown_words])
def test_words_that_are_too_many_or_unknown_are_not_scored_as_characters(
    make_unfit: Callable[[Layout], None], run_stage: RunStage, layout: Layout
) -> None:
    make_unfit(layout)
    result = run_stage("score", "--by-characters")
    assert result.returncode == 0
    assert result.stdout.startswith("words are not read as characters: ")
    assert list(layout.scores_by_characters.iterdir()) == []


def test_scores_of_other_settings_do_not_stay(run_stage: RunStage, layout: Layout) -> None:
    for order in (2, 3):
        change_params(layout.params, {"score.dynamic_counts.order.char": order})
        assert run_stage("score", "--kind", "char").returncode == 0
    learning = [path.name for path in layout.scores_of_ngrams("char").glob("*+dynamic")]
    assert learning == ["char-kneser-ney-3+dynamic"]


@pytest.mark.parametrize("arguments", [("--kind", "char"), ("--by-characters",)])
def test_a_long_train_has_no_model_that_goes_on_counting(
    arguments: tuple[str, ...], run_stage: RunStage, layout: Layout
) -> None:
    change_params(layout.params, {"score.dynamic_counts.max_tokens": 179})
    assert run_stage("score", *arguments).returncode == 0
    assert not list((layout.root / "data" / "scores").rglob("*+dynamic"))


@pytest.mark.parametrize("arguments", [(), ("--run", "small", "--kind", "char"), ("--kind", "char", "--by-characters")])
def test_it_must_be_said_what_is_scored(arguments: tuple[str, ...], run_stage: RunStage) -> None:
    result = run_stage("score", *arguments)
    assert result.returncode == 2
    assert result.stderr == "error: give --run, --kind or --by-characters, one of them\n"


def test_a_stored_score_comes_back_and_one_of_another_model_does_not(tmp_path: Path) -> None:
    score = Score("a", "char", {"val": np.array([1.0, np.inf]), "test": np.array([0.5])}, {"known": [1, None]})
    save_score(tmp_path, score)
    loaded = load_score(tmp_path, "a")
    assert (loaded.name, loaded.kind, loaded.about) == ("a", "char", {"known": [1, None]})
    assert {split: nats.tolist() for split, nats in loaded.nats.items()} == {"val": [1.0, np.inf], "test": [0.5]}
    with pytest.raises(DataError, match="holds the score of 'a', not of 'b'"):
        load_score(tmp_path, "b")
