"""Continuing prefixes with a network."""

import torch

from seqlm.rnn.generation import continue_prefixes
from seqlm.rnn.scratch import ScratchRNN


def model() -> ScratchRNN:
    made = ScratchRNN(4, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        made.flat.mul_(100)
    return made


def test_prefixes_in_one_batch_are_continued_as_if_alone() -> None:
    prefixes = [[1, 2], [3], [2, 1], [1, 1, 1]]
    together = continue_prefixes(model(), prefixes, 12)
    assert together == [continue_prefixes(model(), [prefix], 12)[0] for prefix in prefixes]
    assert all(len(tokens) == 12 for tokens in together)


def test_greedy_continuation_follows_the_model_step_by_step() -> None:
    made, tokens = model(), [1, 2]
    for _ in range(6):
        logits, _ = made(torch.tensor([tokens]), made.initial_state(1))
        tokens.append(int(logits[0, -1, 1:].argmax()) + 1)
    assert continue_prefixes(made, [[1, 2]], 6) == [tokens[2:]]
