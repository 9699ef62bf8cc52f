"""The memory that scoring takes with a large vocabulary."""

import pytest

from stages_by_hand import run_python, succeeded

PROGRAM = """
import resource, sys
import numpy as np, torch
from seqlm.rnn.building import build_network
from seqlm.rnn.array_network import stream_nll
from compiled_networks import network_settings
from seqlm.score.diagnostics import calibration_rows, perplexity_by_position
from seqlm.score.networks import network_predictor

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

torch.set_num_threads(1)
engine, num_hiddens = ("auto", 128) if sys.argv[1] == "compiled" else ("framework", 8)
settings = network_settings("gru", num_hiddens=num_hiddens, embedding="learned", embedding_size=8, engine=engine)
network = build_network(settings, 20_000, seed=0)
ids = np.random.default_rng(0).integers(0, 20_000, 1500)
stream_nll(network, ids[:10])
before = peak()
stream_nll(network, ids)
print(peak() - before)
perplexity_by_position(network_predictor(network), ids[:136])
print(peak() - before)
calibration_rows(network_predictor(network), ids)
print(peak() - before)
"""


@pytest.mark.parametrize("network", ["compiled", pytest.param("framework", marks=pytest.mark.slow)])
def test_a_large_vocabulary_takes_bounded_memory(network: str) -> None:
    # Logits of 1,500 tokens take 120 MB in single precision, those of 8 windows of 128 take 80 MB. In parts, 16 MiB of
    # logits exist at once; compiled loops keep none. Whole distributions are in double precision, 16 MiB a few times.
    after_stream, after_positions, after_calibration = map(int, succeeded(run_python(PROGRAM, network)).split())
    assert max(after_stream, after_positions) < 70e6
    assert after_calibration < 160e6
