"""Continuing prefixes, and what is said of the continuations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.rnn.continuing import Choice, continue_prefixes
from seqlm.ngrams.counting import count_ngrams
from seqlm.ngrams.models import KneserNey
from seqlm.rnn.scratch import ScratchRNN
from seqlm.generate.samples import continue_by_counting, describe, encode_prefix, longest_copy, repeated_share, samples_markdown
from seqlm.vocab.vocabulary import Vocab

VOCAB = Vocab("char", ["<unk>", "a", "b", "c"], [0, 3, 2, 1], "", {})
LOGITS = torch.tensor([[9.0, 2.0, 1.0, 0.0]])


def pick(choice: Choice, draws: int = 2000) -> np.ndarray:
    generator = torch.Generator().manual_seed(0)
    picked = choice.pick(LOGITS.expand(draws, -1), generator)
    return np.bincount(picked.numpy(), minlength=4) / draws


def test_greedy_takes_the_likeliest_token_but_never_unk() -> None:
    assert pick(Choice()).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature_raises_probabilities_to_a_power(temperature: float) -> None:
    # Exercise 8.5-3: q is proportional to p to the power 1 / temperature.
    p = np.exp([2.0, 1.0, 0.0]) / np.exp([2.0, 1.0, 0.0]).sum()
    q = p ** (1 / temperature)
    assert pick(Choice(temperature), 20_000)[1:] == pytest.approx(q / q.sum(), abs=0.015)


def test_top_k_and_nucleus_leave_tokens_out() -> None:
    assert (pick(Choice(1.0, top_k=2)) > 0).tolist() == [False, True, True, False]
    # p is 0.665, 0.245, 0.090: the first holds less than 0.7, the first two hold 0.91.
    assert (pick(Choice(1.0, top_p=0.7)) > 0).tolist() == [False, True, True, False]
    assert (pick(Choice(1.0, top_p=0.6)) > 0).tolist() == [False, True, False, False]


def model() -> ScratchRNN:
    made = ScratchRNN(4, 8, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        made.flat.mul_(100)
    return made


def test_prefixes_in_one_batch_are_continued_as_if_alone() -> None:
    prefixes = [[1, 2], [3], [2, 1], [1, 1, 1]]
    together = continue_prefixes(model(), prefixes, 12, Choice(), 0)
    assert together == [continue_prefixes(model(), [prefix], 12, Choice(), 0)[0] for prefix in prefixes]
    assert all(len(tokens) == 12 for tokens in together)


def test_greedy_continuation_follows_the_model_step_by_step() -> None:
    made, tokens = model(), [1, 2]
    for _ in range(6):
        logits, _ = made(torch.tensor([tokens]), made.initial_state(1))
        tokens.append(int(logits[0, -1, 1:].argmax()) + 1)
    assert continue_prefixes(made, [[1, 2]], 6, Choice(), 0) == [tokens[2:]]


def test_equal_seeds_write_equal_texts() -> None:
    draws = [continue_prefixes(model(), [[1]], 30, Choice(1.0), seed)[0] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_an_ngram_model_writes_what_it_counted() -> None:
    counted = KneserNey(count_ngrams(np.array([1, 2, 3] * 20), 4, 3), 3)
    rng = np.random.default_rng(0)
    assert continue_by_counting(counted, [1, 2], 6, 0.0, rng) == [3, 1, 2, 3, 1, 2]
    assert 0 not in continue_by_counting(counted, [1], 200, 5.0, rng)


def test_a_character_that_the_vocabulary_lacks_is_named() -> None:
    with pytest.raises(DataError, match="the character 'Z' of the prefix is not in the vocabulary"):
        encode_prefix(VOCAB, "aZ", "error")
    assert encode_prefix(VOCAB, "aZ", "unk") == [1, 0]
    with pytest.raises(DataError, match="holds no char"):
        encode_prefix(VOCAB, "", "unk")


def test_copies_and_repeats_are_measured() -> None:
    assert longest_copy("the sea xyz", "near the sea") == len("the sea")
    assert longest_copy("qqq", "abc") == 0
    # 16 characters have 9 runs of eight; the last one repeats the first.
    assert repeated_share("abcdefghabcdefgh") == pytest.approx(1 / 9)
    assert repeated_share("short") == 0


@given(st.text(alphabet="ab ", max_size=25), st.text(alphabet="ab ", max_size=40))
def test_the_longest_copy_is_the_longest(text: str, source: str) -> None:
    runs = {text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)}
    assert longest_copy(text, source) == max((len(run) for run in runs if run in source), default=0)


def test_markup_in_a_sample_is_shown_as_text() -> None:
    text = samples_markdown([describe("m", "<i>", 0, "|<script>alert(1)</script>\n*x*", "source")])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "\\|" in text
    assert text.count("\n| 0 |") == 1
