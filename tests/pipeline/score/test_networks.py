"""Scores of networks: on whole streams and on passages, static and dynamic, and the rule of dynamic updates."""

import platform
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compiled_networks import scratch_network, strong_network
from default_params import PARAMS_FILE
from made_scores import network as describe
from made_scores import stream
from seqlm.core.settings import read_params
from seqlm.models import networks as model_networks
from seqlm.models.info import network_info
from seqlm.models.networks import StaticNetwork, dynamic_nll, dynamic_update, gradient_rms
from seqlm.models.scored_text import Stream, Streams, measure
from seqlm.networks.building import build_network
from seqlm.networks.network import Network, stream_nll
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.pipeline.score import networks
from seqlm.pipeline.score.scores import TRAIN_SUBSET, Scores, score_model
from seqlm.pipeline.score.settings import DynamicParams
from seqlm.pipeline.train.configs import is_of_chapter
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from small_runs import config


@pytest.fixture(autouse=True)
def frequent_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_networks, "UPDATE_EVERY", 8)
    monkeypatch.setattr(model_networks, "RMS_SEGMENTS", 10)


def passages(size: int) -> Stream:
    """Return two passages of a text that repeats 1, 2, 3; the second has a warm-up of 20 tokens."""
    read, is_scored = np.arange(size + 20) % 3 + 1, np.ones(size + 20, bool)
    is_scored[size // 2 : size // 2 + 20] = False
    is_scored[0] = False
    size = int(is_scored.sum())
    return Stream(
        num_chars=size, lengths=np.ones(size, np.int64), spelling=np.zeros(size), share=0.1, input_ids=read,
        is_scored=is_scored,
    )  # fmt: skip


def model(token: str, made: Network, **changes: object) -> StaticNetwork:
    vocab = Vocab(token, [f"t{index}" for index in range(made.vocab_size)], [0] * made.vocab_size, "", {})
    return StaticNetwork(describe("m", token, **changes), vocab, made)


STREAMS = {"train": passages(100), "val": passages(200), "test": passages(120)}


def heldout(texts: Streams, num_tuning_tokens: int = 1000) -> Any:
    """Return made-up texts as what a run is scored on."""

    def head(split: str, num_tokens: int) -> Stream:
        if split == "val":
            assert num_tokens == 20_000  # fewer would choose by chance; these texts have less
            num_tokens = num_tuning_tokens
        return stream(texts[split].ids[:num_tokens]) if num_tokens < len(texts[split].ids) else texts[split]

    return SimpleNamespace(streams=texts, head=head)


@pytest.mark.parametrize(("token", "metadata"), [("word", set()), ("char", {"positions"})])
def test_warm_ups_are_not_scored_and_models_of_characters_are_diagnosed(token: str, metadata: set[str]) -> None:
    score = score_model(model(token, strong_network()), heldout(STREAMS))
    for split, text in STREAMS.items():
        expected = stream_nll(strong_network(), text.input_ids)[text.is_scored[1:]]
        assert score.metrics[split] == measure(expected, text) | {"scored_share": 0.1}
        assert score.nll[split].tolist() == expected.tolist()
    assert set(score.metrics) == {"train", "val", "test"}
    assert set(score.metadata) == metadata
    # So is the part of train that a network saw.
    scored = score_model(model(token, strong_network(), train_tokens=50), heldout(STREAMS))
    assert scored.metrics[TRAIN_SUBSET]["tokens"] == 49


def dynamic_scores(made: Network, texts: Streams, log: list[str], num_tuning_tokens: int = 1000) -> list[Scores]:
    scored = model("word", made), heldout(texts, num_tuning_tokens), texts["train"].ids
    params = DynamicParams(lrs=[0.0001, 0.05], decays=[0.001])
    return list(networks.tune_and_score_dynamic(*scored, params, log.append))


@pytest.mark.parametrize("num_tuning_tokens", [50, 1000])
def test_settings_are_chosen_on_the_beginning_of_val_and_used_on_all_of_it(num_tuning_tokens: int) -> None:
    log: list[str] = []
    (score,) = dynamic_scores(strong_network(), STREAMS, log, num_tuning_tokens=num_tuning_tokens)
    assert score.info == describe("m+dynamic", "word", dynamic=True, chosen_on_val=True, members=("m",))
    # The text repeats itself, so a high learning rate is best.
    assert score.metadata["choices"] == {"dynamic_lr": 0.05, "dynamic_decay": 0.001}
    made = strong_network()
    rms = gradient_rms(made, STREAMS["train"].ids, segment_length=8, num_segments=10)
    update = dynamic_update(0.05, 0.001, rms, made.copy().weights)
    for split in ("val", "test"):
        adapted = dynamic_nll(made, STREAMS[split].input_ids, update, update_every=8)
        assert score.nll[split].tolist() == adapted[STREAMS[split].is_scored[1:]].tolist()
    tried = ["lr 0", "lr 0.0001, decay 0.001", "lr 0.05, decay 0.001"]
    assert [line.partition(":")[0] for line in log] == [f"m+dynamic, {setting}" for setting in tried]


def test_val_decides_whether_a_network_is_made_dynamic_and_test_does_not() -> None:
    # To have learned nothing is best on noise, to learn on a text that repeats itself.
    noise, repeats = stream(np.random.default_rng(0).integers(0, 6, 600)), stream(np.tile([1, 2, 3], 100))
    log: list[str] = []
    assert dynamic_scores(scratch_network(6, 8), {"train": noise, "val": noise, "test": repeats}, log) == []
    assert log[-1] == "m+dynamic: left out, because no learning rate is better than 0 on the validation set"
    (score,) = dynamic_scores(scratch_network(6, 8), {"train": noise, "val": repeats, "test": noise}, [])
    assert score.nll["val"].mean() < 0.9995 * np.log(6) < score.nll["test"].mean()


def test_the_runs_of_the_chapter_are_those_with_its_settings() -> None:
    vocab = Vocab("char", list("?ab"), [0] * 3, "\n", {"train": SplitInfo(20_000, 20_000, 0, "")})
    runs = resolve_runs(read_params(PARAMS_FILE), source="params.yaml")
    infos = [network_info(run, vocab) for run in runs.values()]
    assert {info.name: (info.sampling, info.train_tokens) for info in infos if is_of_chapter(runs[info.name])} == {
        f"{kind}-{sampling}": (sampling, 10_000)
        for kind in ("scratch", "concise")
        for sampling in ("random", "sequential")
    }
    assert all(info.run == info.name for info in infos)
    first = runs["scratch-random"]
    for changes in ({"lr": 0.5}, {"num_epochs": 100}, {"num_hiddens": 256}, {"model": "gru"}, {"token": "word"}):
        assert not is_of_chapter(first.model_copy(update=changes)), changes


def test_a_network_learns_from_the_text_before_each_update_and_from_nothing_else() -> None:
    ids, model = np.tile([1, 2, 3], 100), strong_network()
    before = model.flat.copy()
    rms = gradient_rms(model, ids, segment_length=6, num_segments=10)
    update = dynamic_update(0.05, 0.001, rms, model.copy().weights)
    adapted = dynamic_nll(model, ids, update, update_every=6)
    static = stream_nll(model, ids)
    assert adapted[:6] == pytest.approx(static[:6], rel=1e-5)  # nothing is learned before the first update
    assert adapted[-30:].mean() < static[-30:].mean() / 2
    assert np.array_equal(model.flat, before)
    changed = ids.copy()
    changed[-1] = 5
    assert dynamic_nll(model, changed, update, update_every=6)[:-1] == pytest.approx(adapted[:-1])


def is_subnormal(numbers: np.ndarray) -> np.ndarray:
    bits = numbers.view(np.int32) & 0x7FFFFFFF
    return (bits > 0) & (bits < 1 << 23)


def test_subnormal_numbers_are_zero_during_dynamic_evaluation() -> None:
    """A token that is e to the -86 as likely as another gets a gradient of 4e-38 at most, over 32 tokens 1e-39."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("this processor is not told to treat subnormal numbers as zero")
    network, ids, seen = scratch_network(40, 128), np.tile([1, 2], 50), []
    network.named_weights()["b_q"][10:] = -86.0
    dynamic_nll(network, ids, lambda adapted: seen.append(adapted.gradients[0].copy()), update_every=32)
    assert len(seen) == 4
    assert not any(is_subnormal(gradient).any() for gradient in seen)
    network.compute_gradients(np.array([[1, 2] * 16]), np.array([[2, 1] * 16]), network.initial_state(1))
    assert is_subnormal(network.gradient).any()  # afterwards they are kept again


@pytest.mark.parametrize(
    ("num_tokens", "length", "segments"),
    # The first tokens of each segment and of its warm-up, which has at most 64 tokens.
    [(121, 30, [(0, 0), (90, 26)]), (5, 2, [(0, 0), (2, 0)])],
)
def test_roots_are_those_of_warmed_up_segments(num_tokens: int, length: int, segments: list[tuple[int, int]]) -> None:
    model, ids = strong_network(), np.random.default_rng(0).integers(1, 6, num_tokens)
    stream, squares = ids[None], []
    for start, read in segments:
        state = model.initial_state(1)
        for index in range(read, start):
            state = model.advance_state(stream[:, index : index + 1], state)
        inputs, targets = (stream[:, start : start + length], stream[:, start + 1 : start + length + 1])
        model.compute_gradients(inputs, targets, state)
        squares.append(model.gradient**2)
    (rms,) = gradient_rms(model, ids, segment_length=length, num_segments=2)
    np.testing.assert_allclose(rms, np.sqrt((squares[0] + squares[1]) / 2), rtol=1e-5)
    assert gradient_rms(model, ids[:1], segment_length=2, num_segments=2)[0].sum() == 0


def test_an_update_by_hand() -> None:
    def updated(weights: list[float], gradients: list[float], rms: list[float], trained: list[float]) -> np.ndarray:
        network = strong_network()
        network.flat, network.gradient, *others = (
            np.array(of, np.float32) for of in (weights, gradients, rms, trained)
        )
        dynamic_update(0.1, 0.5, *([array] for array in others))(network)
        return network.flat

    # The average root mean square is 0.2. Damped by 0.3 times it, the divisors are 0.16, 0.26 and 0.36, and the steps
    # -0.1 * 0.2 / 0.16, 0.1 * 0.4 / 0.26 and 0. Roots of 0.5, 1 and 1.5 times their average, times the decay of 0.5,
    # are the shares of the way back: 0.25, 0.5 and 0.75.
    expected = [0.75 * (1 - 0.02 / 0.16), 0.5 * (1 + 0.04 / 0.26), 0.25 + 0.75 * 3]
    assert updated([1, 1, 1], [0.2, -0.4, 0], [0.1, 0.2, 0.3], [0, 0, 3]) == pytest.approx(expected, rel=1e-6)
    # Without any gradient on train, the divisor is 0.3 for all weights, and nothing pulls them back.
    assert updated([1, 1], [0.3, 0], [0, 0], [5, 5]) == pytest.approx([0.9, 1])


@pytest.mark.parametrize("num_hiddens", [8, 128])
def test_any_number_of_threads_gives_the_same_roots(num_hiddens: int) -> None:
    model, ids = scratch_network(6, num_hiddens), np.tile([1, 2, 3, 4, 5], 100)
    found = []
    for model.num_threads in (1, 2, 3):
        found.append(gradient_rms(model, ids, segment_length=6, num_segments=50)[0])
    assert found[0].any()
    assert all(np.array_equal(rms, found[0]) for rms in found)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_compiled_loops_and_the_framework_s_layers_learn_the_same(kind: str) -> None:
    settings = config(model=kind, num_hiddens=128, num_layers=2, embedding="learned", embedding_size=20, dropout=0.3)
    ids, found = np.random.default_rng(0).integers(1, 6, 200), []
    by_torch = build_network(settings.model_copy(update={"engine": "framework"}), 6, 0)
    for network in (by_torch, build_network(settings, 6, 0)):
        rms = gradient_rms(network, ids, segment_length=8, num_segments=10)
        update = dynamic_update(0.002, 0.005, rms, network.copy().weights)
        found.append(dynamic_nll(network, ids, update, update_every=8))
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert np.abs(found[0] - stream_nll(by_torch, ids)).max() > 0.01
