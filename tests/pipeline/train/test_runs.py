"""What a run of the stage train has besides its weights: samples and a summary; and Ctrl-C while it is trained."""

import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import Interrupted
from seqlm.core.files import read_csv, read_json, write_table
from seqlm.networks.network import continue_prefixes
from seqlm.pipeline.train.interrupts import stop_at_ctrl_c
from seqlm.pipeline.train.results import describe_samples, sample_prefix, summarise
from seqlm.train.callbacks import Checkpoint
from seqlm.train.history import SAMPLE_TOKENS, history_table, is_sampled
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import occurs
from seqlm.vocab.vocabulary import Vocab
from small_training import TEXT, config, equal, trained, trainer

VOCAB = Vocab("char", ["<unk>", *"aehst "], [0] * 7, "", {})


def test_samples_are_of_the_first_rows_and_then_of_forty_evenly_spaced_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in range(1, 501) if is_sampled(row, 500)]
    # Each fortieth of 500 rows ends at row 12.5, 25, 37.5, ...
    assert rows == [*range(1, 11), 13, 25, 38, *rows[13:]]
    assert (len(rows), rows[-1]) == (50, 500)
    assert all(is_sampled(row, 20) for row in range(1, 21))
    # Rows without a sample are left out.
    monkeypatch.setattr("seqlm.train.history.FIRST_ROWS", 1)
    monkeypatch.setattr("seqlm.train.history.EVEN_ROWS", 1)
    assert [epoch for epoch, _ in trained(config()).progress.samples] == [1, 3]


def test_each_epoch_has_the_text_that_the_network_wrote_then_and_weights_stay_the_same() -> None:
    made, silent = (Trainer(config(), 6, TEXT, TEXT[:40], torch.device("cpu"), prefix=each) for each in ([1, 2], []))
    written: dict[float, list[int]] = {}

    def record(trainer: Trainer) -> None:
        if trainer.progress.epoch_minibatches == 0:
            tokens = continue_prefixes(trainer.network, np.array([[1, 2]]), SAMPLE_TOKENS)[0]
            written[trainer.progress.epoch] = tokens.tolist()

    made.train(record)
    assert made.progress.samples == [[epoch, written[epoch]] for epoch in (1, 2, 3)]
    silent.train()
    assert silent.progress.samples == []
    assert equal(made.network.weight_copies(), silent.network.weight_copies())
    vocab = Vocab("char", ["<unk>", *"abcde"], [0] * 6, "", {})
    described = describe_samples([[1, [1, 2, 3]]], vocab, "ab")
    assert described == {"prefix": "ab", "samples": [{"epoch": 1, "text": "abc"}]}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("the sea", "the sea"), ("the seas", "sea the eat"), ("xyz", "sea the eat"), ("auto", "sea the eat")],
)
def test_samples_continue_val_if_train_never_has_the_prefix(setting: str, expected: str) -> None:
    train, val = (VOCAB.encode(list(text)) for text in ("a the sea", "sea the eat"))
    assert sample_prefix(config(sample_prefix=setting), VOCAB, train, val) == expected
    # Of train, the run sees "a the" only.
    assert sample_prefix(config(sample_prefix="the sea", max_tokens=5), VOCAB, train, val) == "sea the eat"
    # A val of unknown tokens has no samples.
    assert sample_prefix(config(sample_prefix="xyz"), VOCAB, train, np.zeros(9, np.int64)) == ""


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=30))
def test_tokens_occur_if_their_text_does(wanted: list[int], ids: list[int]) -> None:
    found = "".join(map(str, wanted)) in "".join(map(str, ids))
    with pytest.MonkeyPatch.context() as patch:  # also across blocks
        patch.setattr("seqlm.vocab.corpus._POSITIONS_AT_ONCE", 4)
        assert occurs(np.array(wanted), np.array(ids, np.uint8)) == found


def test_an_overflowing_perplexity_on_val_is_empty_with_a_reason(tmp_path: Path) -> None:
    # One step that is far too long, on a text of one token: the model is certain then, and val has another token.
    made = trainer(config(num_epochs=2, batch_size=2, lr=1e5, grad_clip=None), np.full(100, 1), np.full(50, 2))
    made.train(lambda _: None)
    write_table(tmp_path, "history", history_table("x", made.progress.history))
    write_table(tmp_path, "summary", summarise(made))
    assert read_csv(tmp_path / "history.csv")["val_perplexity"].isna().all()
    summary = read_json(tmp_path / "summary.json")
    assert (summary["last_epoch_train_perplexity"], summary["last_val_perplexity"]) == (1, None)
    assert summary["reason"] == "perplexity on the validation set is too large for a number 2 of 2 times"


@pytest.mark.parametrize("again", ["dvc repro", "dvc exp run --name cc"])
def test_ctrl_c_saves_a_checkpoint_and_an_experiment_keeps_its_name(
    again: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DVC_EXP_NAME", raising=False)
    if again.endswith("cc"):
        monkeypatch.setenv("DVC_EXP_NAME", "cc")  # as DVC does
    made, checkpoint = trainer(config()), Checkpoint(tmp_path / "checkpoint", "x")
    handler = signal.getsignal(signal.SIGINT)

    def press(trainer: Trainer) -> None:
        if trainer.progress.minibatches == 14:
            signal.raise_signal(signal.SIGINT)

    # 14 of 9 minibatches an epoch.
    message = f"^interrupted at epoch 1.556; `{again}` continues from there$"
    with pytest.raises(Interrupted, match=message), stop_at_ctrl_c(checkpoint) as stop:
        made.train(press, stop)
    resumed = trainer(config())
    assert checkpoint.restore(resumed)
    assert resumed.progress.minibatches == 14
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_again_ends_at_once(tmp_path: Path) -> None:
    def press(_: Trainer) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    checkpoint = Checkpoint(tmp_path / "checkpoint", "x")
    with pytest.raises(KeyboardInterrupt), stop_at_ctrl_c(checkpoint) as stop:
        trainer(config()).train(press, stop)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a shell
    with stop_at_ctrl_c(checkpoint):
        handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert handler is signal.SIG_IGN
