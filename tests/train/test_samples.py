"""Samples that a network writes while it is trained."""

from pathlib import Path

import numpy as np
import pytest

from seqlm.networks.network import continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.samples import SAMPLE_TOKENS, describe_samples, is_sampled, keep_sample, sample_prefix
from seqlm.train.trainer import Trainer
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
        checkpoint.save(*made.state())
        raise Stop

    for _ in range(2 * whole.progress.minibatches):
        resumed = trainer(config())
        if saved := checkpoint.load():
            resumed.restore(*saved)
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
    [
        ("the sea", "the sea"),
        ("the xyz", "the xyz"),  # 4 of 7 characters are known
        ("xyz sea!!!", "sea the eat"),  # 4 of 10
        ("时间旅行者", "sea the eat"),
        ("auto", "sea the eat"),
    ],
)
def test_samples_continue_val_if_most_of_the_prefix_is_unknown(setting: str, expected: str) -> None:
    val = VOCAB.encode(list("sea the eat"))
    assert sample_prefix(config(sample_prefix=setting), VOCAB, val) == expected


def test_a_val_of_unknown_tokens_has_no_samples() -> None:
    assert sample_prefix(config(sample_prefix="auto"), VOCAB, np.zeros(9, np.int64)) == ""
