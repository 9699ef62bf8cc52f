"""What a training leaves behind beside its weights."""

from pathlib import Path

import numpy as np
import torch

from seqlm.core.files import read_csv, read_json, write_table
from seqlm.core.settings import read_params
from seqlm.train.history import history_table, summarise
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from smoke import ROOT


def test_a_perplexity_on_val_that_overflows_is_empty_and_has_its_reason(tmp_path: Path) -> None:
    own = {"num_hiddens": 4, "num_epochs": 2, "eval_every": 1, "batch_size": 2, "num_steps": 5}
    # One step that is far too long, on a text of one token: it is sure from then on, and val has another one.
    own |= {"lr": 1e5, "grad_clip": None}
    config = RunConfig(
        **read_params(ROOT / "params.yaml")["train"] | own, token="char", run="x", device="cpu", seed=0, num_threads=1
    )
    trainer = Trainer(config, 3, np.full(100, 1), np.full(50, 2), torch.device("cpu"))
    trainer.run(lambda _: None)
    write_table(tmp_path, "history", history_table(trainer))
    write_table(tmp_path, "summary", summarise(trainer, 2))
    assert read_csv(tmp_path / "history.csv")["val_perplexity"].isna().all()
    summary = read_json(tmp_path / "summary.json")
    assert summary["last_epoch_train_perplexity"] == 1
    assert summary["last_val_perplexity"] is None
    assert summary["reason"] == "perplexity on val is beyond the largest number in 2 of 2 looks at it"
