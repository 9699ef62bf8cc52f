"""What is known of a model besides its score: windows, distributions and positions."""

import numpy as np
import pytest

from compiled_networks import strong_network
from seqlm.core.metrics import perplexity
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.rnn.array_network import stream_nll
from seqlm.score.diagnostics import perplexity_by_position
from seqlm.score.networks import network_predictor
from seqlm.score.ngrams import ngram_predictor

TEXT = np.random.default_rng(0).integers(0, 5, 400)


@pytest.mark.parametrize("family", ["network", "ngram"])
def test_windows_and_distributions_agree_with_the_surprisals_of_the_stream(family: str) -> None:
    ngrams, network = KneserNey(count_ngrams(TEXT, 5, 3), 3), strong_network(5)
    predictor = network_predictor(network) if family == "network" else ngram_predictor(ngrams)
    expected = stream_nll(network, TEXT[:60]) if family == "network" else token_nll(ngrams, TEXT[:60])
    assert predictor.window_nats(TEXT[None, :60])[0] == pytest.approx(expected, abs=1e-5)
    probs = np.concatenate(list(predictor.distributions(TEXT[:60])))
    assert probs.sum(1) == pytest.approx(np.ones(59))
    assert -np.log(probs[np.arange(59), TEXT[1:60]]) == pytest.approx(expected, abs=1e-5)


def test_a_text_of_one_window_gives_the_surprisal_at_each_position() -> None:
    expected = [perplexity(value, 1) for value in stream_nll(strong_network(5), TEXT[:30])]
    assert perplexity_by_position(network_predictor(strong_network(5)), TEXT[:30]) == pytest.approx(expected, rel=1e-5)
