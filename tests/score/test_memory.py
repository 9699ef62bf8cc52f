"""Memory that scoring takes where the vocabulary is large."""

import subprocess
import sys

PROGRAM = """
import resource
import numpy as np, torch
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scoring import stream_nats
from seqlm.score.diagnostics import calibration_rows, network_predictor, perplexity_by_position

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

torch.set_num_threads(1)
network = FrameworkRNN(
    50_000, model="gru", num_hiddens=8, num_layers=1, embedding_size=8, tie_weights=False, dropout=0.0,
    activation="tanh", seed=0,
)
ids = np.random.default_rng(0).integers(0, 50_000, 1500)
stream_nats(network, ids[:10])
before = peak()
stream_nats(network, ids)
print(peak() - before)
perplexity_by_position(network_predictor(network), ids[:136])
print(peak() - before)
calibration_rows(network_predictor(network), ids)
print(peak() - before)
"""


def test_a_large_vocabulary_takes_bounded_memory() -> None:
    # Logits of 1,500 tokens, or of 8 windows of 128, take 200 to 300 MB in single precision and some times
    # twice that in double. In parts it is 64 MiB of logits at once, and of doubles 16 MiB some times.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    after_stream, after_positions, after_calibration = map(int, done.stdout.split())
    assert after_stream < 400e6
    assert after_positions < 400e6
    assert after_calibration < 400e6
