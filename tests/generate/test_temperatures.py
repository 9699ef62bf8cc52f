"""Sampling at any temperature that the settings allow."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.generate.text_generators import sample_ngrams
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.rnn.generation import SamplingConfig

LOW = [1e-3, 1e-30, 1e-40, 1e-320, 5e-324]


@pytest.mark.parametrize("temperature", LOW)
def test_a_very_low_temperature_is_as_greedy_as_zero(temperature: float) -> None:
    logits = torch.tensor([[9.0, 1.0, 3.0, 2.9], [0.0, -700.0, -800.0, -900.0]])
    generator = torch.Generator().manual_seed(0)
    for choice in (
        SamplingConfig(temperature),
        SamplingConfig(temperature, top_k=2),
        SamplingConfig(temperature, top_p=0.5),
    ):
        assert choice.pick(logits.clone(), generator).tolist() == [2, 1]  # token 0 is never chosen


def test_equally_likely_tokens_stay_equally_likely_at_any_temperature() -> None:
    logits = torch.tensor([[0.0, 5.0, 5.0, 4.0]]).repeat(1000, 1)
    drawn = SamplingConfig(1e-40).pick(logits, torch.Generator().manual_seed(0))
    assert set(drawn.tolist()) == {1, 2}
    assert 400 < int((drawn == 1).sum()) < 600


@given(st.floats(0, 100), st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=2, max_size=5))
def test_tokens_can_be_drawn_from_any_logits_at_any_temperature(temperature: float, logits: list[float]) -> None:
    (chosen,) = SamplingConfig(temperature).pick(torch.tensor([logits]), torch.Generator().manual_seed(0)).tolist()
    assert 1 <= chosen < len(logits)


@pytest.mark.parametrize("temperature", LOW)
def test_a_very_low_temperature_is_as_greedy_as_zero_for_ngram_models(temperature: float) -> None:
    ids = np.array([1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 3])
    model = KneserNey(count_ngrams(ids, 4, 2), 2)
    generated = sample_ngrams(model, [1], 8, temperature, np.random.default_rng(0))
    assert generated == sample_ngrams(model, [1], 8, 0.0, np.random.default_rng(0))
