"""How perplexity depends on the amount of context."""

import numpy as np
import pytest

from compiled_networks import strong_network
from made_scores import network
from seqlm.core.metrics import perplexity
from seqlm.models.networks import StaticNetwork
from seqlm.models.ngrams import NGram
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.score.diagnostics import MAX_WINDOWS, context_metadata, perplexity_by_position
from seqlm.vocab.vocabulary import SplitInfo, Vocab

TEXT = np.random.default_rng(0).integers(0, 5, 400)
VOCAB = Vocab("char", list("?abcd"), [0] * 5, "", {"train": SplitInfo(400, 400, 0, "")})


def test_a_text_of_one_window_gives_the_surprisal_at_each_position() -> None:
    model = StaticNetwork(network("m"), VOCAB, strong_network(5))
    expected = [perplexity(value, 1) for value in stream_nll(strong_network(5), TEXT[:30])]
    assert perplexity_by_position(model, TEXT[:30]) == pytest.approx(expected, rel=1e-5)
    words = Vocab("word", VOCAB.tokens, VOCAB.counts, "", VOCAB.splits)
    assert set(context_metadata(model, TEXT)) == {"positions"}
    assert context_metadata(StaticNetwork(network("m", "word"), words, strong_network(5)), TEXT) == {}


def test_windows_are_spread_over_all_of_the_text() -> None:
    """The first windows repeat one token; later ones do not, and the model knows only the first ones."""
    model = NGram.of(KneserNey(count_ngrams(np.ones(400, np.int64), 5, 2), 2), VOCAB)
    ones = np.ones(130 + 2 * MAX_WINDOWS, np.int64)
    mixed = np.append(ones, TEXT[TEXT != 1])
    assert max(perplexity_by_position(model, ones)) * 1.2 < min(perplexity_by_position(model, mixed))
