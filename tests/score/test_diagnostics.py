"""What is known of a model besides its score: windows, distributions and positions, in bounded memory."""

import numpy as np
import pytest

from compiled_networks import strong_network
from seqlm.core.metrics import perplexity
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.score.diagnostics import perplexity_by_position
from seqlm.score.networks import network_predictor
from seqlm.score.ngrams import ngram_predictor
from stages_by_hand import run_python, succeeded

TEXT = np.random.default_rng(0).integers(0, 5, 400)


@pytest.mark.parametrize("family", ["network", "ngram"])
def test_windows_and_distributions_agree_with_the_surprisals_of_the_stream(family: str) -> None:
    ngrams, network = KneserNey(count_ngrams(TEXT, 5, 3), 3), strong_network(5)
    predictor = network_predictor(network) if family == "network" else ngram_predictor(ngrams)
    expected = stream_nll(network, TEXT[:60]) if family == "network" else token_nll(ngrams, TEXT[:60])
    assert predictor.window_nll(TEXT[None, :60])[0] == pytest.approx(expected, abs=1e-5)
    probs = np.concatenate(list(predictor.distributions(TEXT[:60])))
    assert probs.sum(1) == pytest.approx(np.ones(59))
    assert -np.log(probs[np.arange(59), TEXT[1:60]]) == pytest.approx(expected, abs=1e-5)


def test_a_text_of_one_window_gives_the_surprisal_at_each_position() -> None:
    expected = [perplexity(value, 1) for value in stream_nll(strong_network(5), TEXT[:30])]
    assert perplexity_by_position(network_predictor(strong_network(5)), TEXT[:30]) == pytest.approx(expected, rel=1e-5)


PROGRAM = """
import resource, sys
import numpy as np, torch
from seqlm.networks.building import build_network
from seqlm.networks.network import stream_nll
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
    # Logits of 1,500 tokens take 120 MB in single precision, and with their softmax 350 MB. In parts, 16 MiB of logits
    # exist at once, and 50 to 115 MB of what is made of them; compiled loops keep none. Whole distributions are in
    # double precision: 980 MB at once, 170 to 250 MB in parts.
    after_stream, after_positions, after_calibration = map(int, succeeded(run_python(PROGRAM, network)).split())
    assert max(after_stream, after_positions) < (10e6 if network == "compiled" else 160e6)
    assert after_calibration < 350e6
