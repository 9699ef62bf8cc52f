"""Samples that a network writes while it is trained."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.networks.network import continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.samples import SAMPLE_TOKENS, describe_samples, is_sampled, keep_sample, sample_prefix
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import occurs
from seqlm.vocab.vocabulary import Vocab
from small_training import config, equal, trained, trainer

PREFIX = np.array([1, 2])
VOCAB = Vocab("char", ["<unk>", *"aehst "], [0] * 7, "", {})


def test_the_first_rows_have_samples_and_then_forty_evenly_spaced_ones() -> None:
    rows = [row for row in range(1, 501) if is_sampled(row, 500)]
    # Each fortieth of 500 rows ends at row 12.5, 25, 37.5, ...
    assert rows == [*range(1, 11), 13, 25, 38, *rows[13:]]
    assert (len(rows), rows[-1]) == (50, 500)
    assert all(is_sampled(row, 20) for row in range(1, 21))


def test_each_epoch_has_the_text_that_the_network_wrote_then_and_weights_stay_the_same() -> None:
    made = trainer(config())
    written: dict[float, list[int]] = {}

    def record(trainer: Trainer) -> None:
        keep_sample(trainer, PREFIX)
        if trainer.progress.epoch_minibatches == 0:
            tokens = continue_prefixes(trainer.network, PREFIX[None], SAMPLE_TOKENS)[0]
            written[trainer.progress.epoch] = tokens.tolist()

    made.train(record)
    assert made.progress.samples == [[epoch, written[epoch]] for epoch in (1, 2, 3)]
    assert equal(made.network.weight_copies(), trained(config()).network.weight_copies())
    vocab = Vocab("char", ["<unk>", *"abcde"], [0] * 6, "", {})
    described = describe_samples([[1, [1, 2, 3]]], vocab, "ab")
    assert described == {"prefix": "ab", "samples": [{"epoch": 1, "text": "abc"}]}


def test_a_training_that_resumes_keeps_its_samples(tmp_path: Path) -> None:
    whole = trainer(config())
    whole.train(lambda made: keep_sample(made, PREFIX))
    checkpoint = Checkpoint(tmp_path, "key")

    class Stop(Exception):
        """The process ends here."""

    def stop(made: Trainer) -> None:
        keep_sample(made, PREFIX)
        checkpoint.save(made.state())
        raise Stop

    for _ in range(2 * whole.progress.minibatches):
        resumed = trainer(config())
        if saved := checkpoint.load():
            resumed.restore(saved)
        try:
            resumed.train(stop)
        except Stop:
            continue
        break
    assert resumed.is_done
    assert resumed.progress.samples == whole.progress.samples
    # Without a text to continue there are no samples.
    keep_sample(resumed, PREFIX[:0])
    assert len(resumed.progress.samples) == 3


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("the sea", "the sea"), ("the seas", "sea the eat"), ("xyz", "sea the eat"), ("auto", "sea the eat")],
)
def test_samples_continue_val_if_train_never_has_the_prefix(setting: str, expected: str) -> None:
    train, val = (VOCAB.encode(list(text)) for text in ("a the sea", "sea the eat"))
    assert sample_prefix(config(sample_prefix=setting), VOCAB, train, val) == expected


def test_a_val_of_unknown_tokens_has_no_samples() -> None:
    zeros = np.zeros(9, np.int64)
    assert sample_prefix(config(sample_prefix="xyz"), VOCAB, zeros, zeros) == ""


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=30))
def test_tokens_occur_if_their_text_does(wanted: list[int], ids: list[int]) -> None:
    found = "".join(map(str, wanted)) in "".join(map(str, ids))
    assert occurs(np.array(wanted), np.array(ids, np.uint8)) == found
