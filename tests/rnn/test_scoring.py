"""Scoring a stream."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.scratch import ScratchRNN


def scratch() -> ScratchRNN:
    model = ScratchRNN(6, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.flat.mul_(50)
    return model


def lstm() -> FrameworkRNN:
    return FrameworkRNN(
        6, model="lstm", num_hiddens=8, num_layers=2, embedding_size=4, tie_weights=False, dropout=0.5,
        activation="tanh", seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("make", [scratch, lstm])
@settings(deadline=None, max_examples=20)
@given(size=st.integers(2, 60), chunk=st.integers(1, 70))
def test_any_chunking_gives_the_same_scores(make, size: int, chunk: int) -> None:
    ids = np.random.default_rng(size).integers(0, 6, size)
    whole, parts = stream_nll(make(), ids), stream_nll(make(), ids, chunk=chunk)
    assert whole.shape == (size - 1,)
    assert parts.sum() == pytest.approx(whole.sum(), rel=1e-5)
