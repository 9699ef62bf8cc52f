"""Continuing prefixes with a network, and choosing the next token."""

import numpy as np
import pytest
import torch

from seqlm.rnn.generation import SamplingConfig, continue_prefixes
from seqlm.rnn.scratch import ScratchRNN

LOGITS = torch.tensor([[9.0, 2.0, 1.0, 0.0]])


def pick(sampling: SamplingConfig, draws: int = 2000) -> np.ndarray:
    generator = torch.Generator().manual_seed(0)
    picked = sampling.pick(LOGITS.expand(draws, -1), generator)
    return np.bincount(picked.numpy(), minlength=4) / draws


def test_greedy_takes_the_likeliest_token_but_never_unk() -> None:
    assert pick(SamplingConfig()).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature_raises_probabilities_to_a_power(temperature: float) -> None:
    # Exercise 8.5-3: q is proportional to p to the power 1 / temperature.
    p = np.exp([2.0, 1.0, 0.0]) / np.exp([2.0, 1.0, 0.0]).sum()
    q = p ** (1 / temperature)
    assert pick(SamplingConfig(temperature), 20_000)[1:] == pytest.approx(q / q.sum(), abs=0.015)


def test_top_k_and_nucleus_leave_tokens_out() -> None:
    assert (pick(SamplingConfig(1.0, top_k=2)) > 0).tolist() == [False, True, True, False]
    # p is 0.665, 0.245, 0.090: the first holds less than 0.7, the first two hold 0.91.
    assert (pick(SamplingConfig(1.0, top_p=0.7)) > 0).tolist() == [False, True, True, False]
    assert (pick(SamplingConfig(1.0, top_p=0.6)) > 0).tolist() == [False, True, False, False]


def model() -> ScratchRNN:
    made = ScratchRNN(4, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        made.flat.mul_(100)
    return made


def test_prefixes_in_one_batch_are_continued_as_if_alone() -> None:
    prefixes = [[1, 2], [3], [2, 1], [1, 1, 1]]
    together = continue_prefixes(model(), prefixes, 12, SamplingConfig(), 0)
    assert together == [continue_prefixes(model(), [prefix], 12, SamplingConfig(), 0)[0] for prefix in prefixes]
    assert all(len(tokens) == 12 for tokens in together)


def test_greedy_continuation_follows_the_model_step_by_step() -> None:
    made, tokens = model(), [1, 2]
    for _ in range(6):
        logits, _ = made(torch.tensor([tokens]), made.initial_state(1))
        tokens.append(int(logits[0, -1, 1:].argmax()) + 1)
    assert continue_prefixes(made, [[1, 2]], 6, SamplingConfig(), 0) == [tokens[2:]]


def test_equal_seeds_write_equal_texts() -> None:
    draws = [continue_prefixes(model(), [[1]], 30, SamplingConfig(1.0), seed)[0] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
