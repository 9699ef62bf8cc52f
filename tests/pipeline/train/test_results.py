"""Samples that a network writes while it is trained, and the summary of a run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.files import read_csv, read_json, write_table
from seqlm.networks.network import continue_prefixes
from seqlm.pipeline.train.results import describe_samples, sample_prefix, summarise
from seqlm.train.history import SAMPLE_TOKENS, history_table, is_sampled
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import occurs
from seqlm.vocab.vocabulary import Vocab
from small_training import TEXT, config, equal, trained, trainer

VOCAB = Vocab("char", ["<unk>", *"aehst "], [0] * 7, "", {})


def test_the_first_rows_have_samples_and_then_forty_evenly_spaced_ones() -> None:
    rows = [row for row in range(1, 501) if is_sampled(row, 500)]
    # Each fortieth of 500 rows ends at row 12.5, 25, 37.5, ...
    assert rows == [*range(1, 11), 13, 25, 38, *rows[13:]]
    assert (len(rows), rows[-1]) == (50, 500)
    assert all(is_sampled(row, 20) for row in range(1, 21))


def test_rows_without_a_sample_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_val_of_unknown_tokens_has_no_samples() -> None:
    zeros = np.zeros(9, np.int64)
    assert sample_prefix(config(sample_prefix="xyz"), VOCAB, zeros, zeros) == ""


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=30))
def test_tokens_occur_if_their_text_does(wanted: list[int], ids: list[int]) -> None:
    found = "".join(map(str, wanted)) in "".join(map(str, ids))
    assert occurs(np.array(wanted), np.array(ids, np.uint8)) == found


def test_a_prefix_is_found_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqlm.vocab.corpus._POSITIONS_AT_ONCE", 4)
    ids = np.arange(1, 12)
    assert all(occurs(ids[start : start + 3], ids) for start in range(9))
    assert not occurs(np.array([10, 11, 12]), ids)


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
