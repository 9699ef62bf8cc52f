"""Scores of networks: on whole streams and on passages, static and dynamic."""

import numpy as np
import pytest
import torch

from compiled_networks import scratch_network, strong_network, threads
from made_scores import network as describe
from made_scores import stream
from seqlm.heldout.scored_text import Stream, Streams
from seqlm.rnn.array_network import stream_nll
from seqlm.rnn.network import Network
from seqlm.score import networks
from seqlm.score.settings import DynamicParams
from seqlm.score.store import TRAIN_SUBSET, Score, summarise
from seqlm.train.trainer import Trainer
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from small_runs import config

PARAMS = DynamicParams(lrs=[0.0001, 0.05], decays=[0.001], update_every=8, rms_segments=10)


def passages(size: int) -> Stream:
    """Return two passages of a text that repeats 1, 2, 3; the second has a warm-up of 20 tokens."""
    read, is_scored = np.arange(size + 20) % 3 + 1, np.ones(size + 20, bool)
    is_scored[size // 2 : size // 2 + 20] = False
    return Stream(**vars(stream(read[is_scored])) | {"share": 0.1, "read": read, "is_scored": is_scored})


def streams() -> Streams:
    return {"train": passages(100), "val": passages(200), "test": passages(120)}


@pytest.mark.parametrize(("token", "metadata"), [("word", set()), ("char", {"positions", "calibration"})])
def test_warm_ups_are_read_and_not_scored_and_models_of_characters_are_diagnosed(
    token: str, metadata: set[str]
) -> None:
    score = networks.score_network(describe("m", token), strong_network(), streams(), None)
    for split, text in streams().items():
        assert score.nats[split].tolist() == stream_nll(strong_network(), text.read)[text.is_scored[1:]].tolist()
        assert score.metrics[split]["scored_share"] == 0.1
    assert set(score.metrics) == {"train", "val", "test"}
    assert set(score.metadata) == metadata


def test_the_part_of_train_that_a_run_saw_has_metrics_of_its_own() -> None:
    seen = stream(np.arange(30) % 3 + 1)
    score = networks.score_network(describe("m", "word"), strong_network(), streams(), seen)
    assert set(score.nats) == {"train", "val", "test"}
    assert score.metrics[TRAIN_SUBSET] == summarise(stream_nll(strong_network(), seen.ids), seen)


def dynamic_scores(
    made: Network, texts: Streams, log: list[str], params: DynamicParams = PARAMS, num_tuning_tokens: int = 1000
) -> list[Score]:
    static = networks.score_network(describe("m", "word"), made, texts, None)
    return list(networks.score_dynamically(static, made, texts, params, log.append, num_tuning_tokens))


@pytest.mark.parametrize("num_tuning_tokens", [50, 1000])
def test_settings_are_chosen_on_the_beginning_of_val_and_used_on_all_of_it(num_tuning_tokens: int) -> None:
    log: list[str] = []
    (score,) = dynamic_scores(strong_network(), streams(), log, num_tuning_tokens=num_tuning_tokens)
    assert score.info == describe("m+dynamic", "word", dynamic=True, chosen_on_val=True, members=("m",))
    # The text repeats itself, so a high learning rate is best.
    assert score.metadata["choices"] == {"dynamic_lr": 0.05, "dynamic_decay": 0.001}
    model = strong_network()
    roots = networks.gradient_roots(model, streams()["train"].ids, segment_length=8, num_segments=10)
    rule = networks.DynamicRule(0.05, 0.001, roots, networks.trained_weights(model))
    for split in ("val", "test"):
        text = streams()[split]
        adapted = networks.dynamic_nll(model, text.read, update_every=8, update=rule.apply)
        assert score.nats[split].tolist() == adapted[text.is_scored[1:]].tolist()
    tried = ["lr 0", "lr 0.0001, decay 0.001", "lr 0.05, decay 0.001"]
    assert [line.partition(":")[0] for line in log] == [f"m+dynamic, {setting}" for setting in tried]


def test_any_number_of_threads_gives_the_same_dynamic_score() -> None:
    found = []
    for num_threads in (1, 2):
        log: list[str] = []
        with threads(num_threads):
            (score,) = dynamic_scores(strong_network(), streams(), log)
        without_seconds = [line.rpartition(",")[0] for line in log]
        found.append(({split: nats.tolist() for split, nats in score.nats.items()}, score.metadata, without_seconds))
    assert found[0] == found[1]


def test_a_network_that_knows_its_text_by_heart_is_not_made_dynamic() -> None:
    """Gradients on a text that repeats one line are close to zero: steps divided by them would undo the training."""
    text = np.tile([1, 2, 3, 4, 5, 1, 2, 6, 3, 7, 8, 9], 200)
    texts = {"train": stream(text), "val": stream(text[:600]), "test": stream(text[:600])}
    settings = config(num_hiddens=32, num_steps=20, batch_size=8, num_epochs=60, eval_every=60)
    trainer = Trainer(settings, 12, text, text[:200], torch.device("cpu"))
    trainer.run(lambda _: None)
    log: list[str] = []
    params = DynamicParams(lrs=[0.01, 0.05], decays=[0.002], update_every=32, rms_segments=50)
    assert dynamic_scores(trainer.network, texts, log, params) == []
    assert log[-1] == "m+dynamic: left out, because no learning rate is better than 0 on val"


NOISE = np.random.default_rng(0).integers(0, 6, 600)
REPEATS = np.tile([1, 2, 3], 100)


def uniform_network() -> Network:
    """Return a network that has learned nothing. On noise that is best; on a text that repeats itself, learning is."""
    return scratch_network(6, 8)


def texts_of(val: np.ndarray, test: np.ndarray) -> Streams:
    return {"train": stream(NOISE), "val": stream(val), "test": stream(test)}


def test_val_decides_whether_a_network_is_made_dynamic_and_test_does_not() -> None:
    assert dynamic_scores(uniform_network(), texts_of(NOISE, REPEATS), []) == []
    (score,) = dynamic_scores(uniform_network(), texts_of(REPEATS, NOISE), [])
    assert score.nats["val"].mean() < np.log(6) < score.nats["test"].mean()


def test_the_settings_of_dynamic_evaluation_are_chosen_on_val_and_not_on_test() -> None:
    """A text that repeats itself from its beginning asks for a high rate; one that begins with noise for a low one."""
    repeats, mixed = np.tile(REPEATS, 2), np.r_[NOISE, REPEATS]
    chosen = []
    for val, test in ((repeats, mixed), (mixed, repeats)):
        scores = dynamic_scores(uniform_network(), texts_of(val, test), [])
        chosen += [score.metadata["choices"]["dynamic_lr"] for score in scores] or [0]
    assert chosen[0] > chosen[1]


def test_a_dynamic_score_that_loses_on_all_of_val_is_left_out() -> None:
    """The settings are chosen on the beginning of val, which repeats itself; the rest is noise."""
    texts, log = texts_of(np.r_[REPEATS, *[NOISE] * 4], REPEATS), []
    params = PARAMS.model_copy(update={"lrs": [0.01]})
    assert dynamic_scores(uniform_network(), texts, log, params, num_tuning_tokens=300) == []
    assert log[-1] == "m+dynamic: left out, because m is as good on val"


def test_a_run_is_described_by_its_settings_whatever_its_name() -> None:
    vocab = Vocab("char", list("?ab"), [0] * 3, "\n", {"train": SplitInfo(50, 100, 0, "")})
    info = networks.describe_run(config("char.lstm-6", model="gru", max_tokens=10), vocab)
    assert (info.name, info.family, info.token, info.network) == ("char.lstm-6", "network", "char", "gru")
    # 10 of 50 tokens are a fifth of the characters.
    assert info.train_chars == 20
    assert (info.epoch, info.chosen_on_val) == ("last", False)
    kept = networks.describe_run(config(keep="best"), vocab)
    assert (kept.epoch, kept.chosen_on_val) == ("best", True)
    assert networks.describe_run(config(patience=3), vocab).chosen_on_val
    best = networks.describe_run(config("run", max_tokens=10), vocab, is_best=True)
    assert (best.name, best.epoch, best.train_chars, best.chosen_on_val) == ("run@best", "best", 20, True)
    assert [networks.describe_run(config(max_tokens=limit), vocab).train_chars for limit in (None, 60)] == [100, 100]
    assert (info.smoothing, info.order, info.counted_token, info.dynamic, info.members) == (None, None, None, False, ())
