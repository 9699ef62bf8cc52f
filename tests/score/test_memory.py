"""Memory that scoring takes where the vocabulary is large."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np, torch
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scoring import stream_nats
from seqlm.score.diagnostics import calibration_rows, network_predictor, perplexity_by_position

torch.set_num_threads(1)
network = FrameworkRNN(
    50_000, model="gru", num_hiddens=8, num_layers=1, embedding_size=8, tie_weights=False, dropout=0.0,
    activation="tanh", seed=0,
)
ids = np.random.default_rng(0).integers(0, 50_000, 1500)
work = {
    "stream": lambda: stream_nats(network, ids),
    "positions": lambda: perplexity_by_position(network_predictor(network), ids[:136]),
    "calibration": lambda: calibration_rows(network_predictor(network), ids),
}[WHAT]
stream_nats(network, ids[:10])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("what", ["stream", "positions", "calibration"])
def test_a_large_vocabulary_takes_bounded_memory(what: str) -> None:
    # Logits of 1,500 tokens, or of 8 windows of 128, take 200 to 300 MB in single precision and twice that
    # in double, once or more. In parts it is 64 MiB of logits, and of doubles 16 MiB a few times.
    program = PROGRAM.replace("WHAT", repr(what))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 250e6
