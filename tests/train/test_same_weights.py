"""Compiled trainings end with the same weights, whatever number of threads and kind of vector registers."""

import json

import pytest

from compiled_networks import printed_with_each_width, threads
from small_training import config, equal, trained

GATED = {
    "num_hiddens": 128, "num_layers": 2, "embedding": "learned", "embedding_size": 20, "dropout": 0.3, "batch_size": 8,
    "optimizer": "adamw", "lr": 0.01, "schedule": "cosine", "weight_decay": 0.1, "keep": "best",
}  # fmt: skip


@pytest.mark.parametrize("model", ["lstm", "gru"])
def test_one_thread_and_two_train_the_same_weights(model: str) -> None:
    run, ended = config(model=model, **GATED), []
    for num_threads in (1, 2):
        with threads(num_threads):
            ended.append(trained(run))
    alone, together = ended
    assert equal(alone.network.weights(), together.network.weights())
    assert alone.progress == together.progress


_TRAIN = """
import hashlib, json, sys
import torch
from seqlm.rnn.compiled.tiles import WIDTH
from small_training import config, trained
torch.set_num_threads(1)
ended = trained(config(model="lstm", **json.loads(sys.argv[1])))
weights = b"".join(weight.numpy().tobytes() for weight in ended.network.weights().values())
print(WIDTH, hashlib.sha256(weights).hexdigest(), ended.progress.history)
"""


@pytest.mark.slow
def test_narrow_registers_train_the_same_weights() -> None:
    wide, narrow = printed_with_each_width(_TRAIN, json.dumps(GATED))
    assert wide == narrow
