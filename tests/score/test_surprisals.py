"""What models make of streams, whole ones and passages of long ones."""

from pathlib import Path

import numpy as np
import pytest
import torch

from compiled_networks import threads
from seqlm.core.errors import DataError
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.scratch import ScratchRNN
from seqlm.score import surprisals
from seqlm.score.heldout.splits import TRAIN_SUBSET, Stream, Streams
from seqlm.score.networks.dynamic import SgdRule, dynamic_nll
from seqlm.score.settings import DynamicParams
from seqlm.score.store import DYNAMIC, Score, load_score, measure, save_score

RNG = np.random.default_rng(0)
SGD = DynamicParams(rule="sgd", lrs=[0.001, 1.0], decays=[0.1], every=8, clip=1.0, segments=1)


def network() -> ScratchRNN:
    made = ScratchRNN(6, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        made.flat.mul_(50)
    return made


def stream(size: int) -> Stream:
    """Return text in which 1, 2, 3 come again and again, so that there is something to learn."""
    return Stream(np.arange(size) % 3 + 1, size - 1, np.zeros(size), np.arange(1, size + 1))


def passages(size: int) -> Stream:
    """Return a stream of two passages of which the second has 20 tokens of warm-up before it."""
    read = np.arange(size + 20) % 3 + 1
    is_scored = np.ones(size + 20, bool)
    is_scored[size // 2 : size // 2 + 20] = False
    whole = stream(size)
    return Stream(read[is_scored], size - 1, whole.unknown_costs, whole.ends, 0.1, (), read, is_scored)


def streams() -> Streams:
    return {"train": passages(100), "val": passages(200), "test": passages(120)}


def test_warm_ups_are_read_and_not_scored() -> None:
    score = surprisals.score_network("m", "word", network(), streams())
    for split, stream in streams().items():
        expected = stream_nll(network(), stream.read)[stream.is_scored[1:]]
        assert score.nats[split].tolist() == expected.tolist()
        assert len(expected) == len(stream.ids) - 1
    assert score.measures(streams())["test"]["scored_share"] == 0.1


def test_what_a_run_saw_is_measured_where_it_is_scored() -> None:
    found = streams() | {TRAIN_SUBSET: stream(30)}
    score = surprisals.score_network("m", "word", network(), found)
    expected = measure(stream_nll(network(), found[TRAIN_SUBSET].ids), found[TRAIN_SUBSET])
    assert set(score.nats) == {"train", "val", "test"}
    assert score.measures(streams())[TRAIN_SUBSET] == expected
    assert TRAIN_SUBSET not in surprisals.score_network("m", "word", network(), streams()).measures(streams())


@pytest.mark.parametrize("choice_tokens", [50, 1000])
def test_settings_are_chosen_on_the_beginning_of_val_and_hold_for_all_of_it(
    choice_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprisals, "_CHOICE_TOKENS", choice_tokens)
    said: list[str] = []
    score = surprisals.score_dynamically("m", "char", network(), streams(), SGD, said.append)
    assert score.name == "m" + DYNAMIC
    assert score.about["choices"] == {"dynamic_lr": 1.0}  # the text repeats itself: much is learnt from a little
    for split in ("val", "test"):
        part = streams()[split]
        adapted = dynamic_nll(network(), part.read, every=8, apply=SgdRule(1.0, 1.0).apply)
        assert score.nats[split].tolist() == adapted[part.is_scored[1:]].tolist()
    assert [line.partition(":")[0] for line in said] == ["m+dynamic, lr 0.001", "m+dynamic, lr 1"]


@pytest.mark.parametrize("dynamic", [SGD, SGD.model_copy(update={"rule": "rms", "segments": 10})])
def test_any_number_of_threads_learns_the_same(dynamic: DynamicParams) -> None:
    found = []
    for num_threads in (1, 2):
        said: list[str] = []
        with threads(num_threads):
            score = surprisals.score_dynamically("m", "char", network(), streams(), dynamic, said.append)
        shown = [line.rpartition(",")[0] for line in said]  # without the seconds
        found.append(({split: nats.tolist() for split, nats in score.nats.items()}, score.about, shown))
    assert found[0] == found[1]


def test_surprisals_stay_in_their_files_until_they_are_asked_for(tmp_path: Path) -> None:
    score = Score("m", "char", {"val": np.arange(5.0), "test": np.arange(3.0)})
    save_score(tmp_path, score)
    found = load_score(tmp_path, "m")
    assert list(found.nats) == ["val", "test"]
    assert found.nats["val"].tolist() == [0, 1, 2, 3, 4]
    assert isinstance(found.nats["val"].base, np.memmap)
    np.save(tmp_path / "test.npy", np.ones(3))
    assert found.nats["test"].tolist() == [1, 1, 1]  # nothing was read before
    with pytest.raises(DataError, match=r"test\.npy: its content does not match the SHA-256 in score\.json"):
        load_score(tmp_path, "m")


def test_surprisals_of_another_text_are_refused() -> None:
    with pytest.raises(DataError, match="9 surprisals for a text of 11 tokens: score again"):
        measure(np.ones(9), stream(11))
