"""What a training leaves beside its weights."""

from pathlib import Path

import numpy as np
import torch

from seqlm.core.files import read_csv, read_json, write_table
from seqlm.train.history import history_table, summarise
from seqlm.train.trainer import Trainer
from small_training import config


def test_an_overflowing_perplexity_on_val_is_empty_with_a_reason(tmp_path: Path) -> None:
    # One step that is far too long, on a text of one token: the model is certain then, and val has another token.
    run = config(num_epochs=2, batch_size=2, lr=1e5, grad_clip=None)
    trainer = Trainer(run, 3, np.full(100, 1), np.full(50, 2), torch.device("cpu"))
    trainer.run(lambda _: None)
    write_table(tmp_path, "history", history_table("x", trainer.progress.history))
    write_table(tmp_path, "summary", summarise(trainer.progress, trainer.num_parameters, 2, "compiled"))
    assert read_csv(tmp_path / "history.csv")["val_perplexity"].isna().all()
    summary = read_json(tmp_path / "summary.json")
    assert summary["last_epoch_train_perplexity"] == 1
    assert summary["last_val_perplexity"] is None
    assert summary["reason"] == "perplexity on val is too large for a number 2 of 2 times"
