"""The compiled from-scratch network against its equations in double precision, and against itself."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from compiled_networks import compute, distance, printed_with_each_width, threads
from seqlm.gradients.short_runs import TruncationNoise
from seqlm.rnn.generation import continue_prefixes
from seqlm.rnn.scratch import ScratchRNN


def make(vocab_size: int, num_hiddens: int, activation: str = "tanh", seed: int = 0) -> ScratchRNN:
    model = ScratchRNN(vocab_size, num_hiddens, activation, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        # Larger weights than the book's, so that every term counts, and smaller in wider networks.
        model.flat.copy_(torch.randn(model.flat.shape, generator=generator) / num_hiddens**0.5)
    return model


def exact(model: ScratchRNN) -> ScratchRNN:
    """Return a network in double precision, which is not compiled."""
    other = copy.deepcopy(model).double()
    assert not other.is_compiled
    return other


def draw(model: ScratchRNN, batch_size: int, num_steps: int, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, model.vocab_size, (batch_size, num_steps + 1), generator=generator)
    return ids[:, :-1], ids[:, 1:], torch.randn(batch_size, model.num_hiddens, generator=generator)


@settings(max_examples=25, deadline=None)
@given(
    vocab_size=st.integers(2, 70), num_hiddens=st.integers(1, 70), batch_size=st.integers(1, 19),
    num_steps=st.integers(1, 6), activation=st.sampled_from(["tanh", "relu"]), is_random=st.booleans(),
    num_threads=st.integers(1, 3),
)  # fmt: skip
def test_gradients_of_any_shape_are_those_of_double_precision(
    vocab_size: int, num_hiddens: int, batch_size: int, num_steps: int, activation: str, is_random: bool,
    num_threads: int,
) -> None:  # fmt: skip
    model = make(vocab_size, num_hiddens, activation)
    inputs, targets, state = draw(model, batch_size, num_steps)
    keep = None
    if is_random:
        keep = torch.empty(num_steps, batch_size).bernoulli_(0.5, generator=torch.Generator().manual_seed(2)) / 0.5
    noise = None if keep is None else TruncationNoise(lambda: keep)
    nll, after, gradient = compute(model, num_threads, inputs, targets, state, noise)
    double = exact(model)
    wanted = double.compute_gradients(
        inputs, targets, state.double(), None if keep is None else TruncationNoise(keep.double)
    )
    torch.testing.assert_close(nll, wanted[0], rtol=1e-5, atol=1e-5)
    assert distance(after, wanted[1]) < 1e-5 or float(wanted[1].norm()) < 1e-3
    # A unit of relu at the border of zero may fall on either side of it.
    assert distance(gradient, double.flat.grad) < (1e-5 if activation == "tanh" else 1e-3)


@pytest.mark.parametrize("num_hiddens", [256, 512])
def test_gradients_of_the_book_s_networks_agree_to_a_millionth(num_hiddens: int) -> None:
    model = ScratchRNN(28, num_hiddens, "tanh", torch.Generator().manual_seed(0))
    assert model.is_compiled
    inputs, targets, state = draw(model, 32, 35)
    nll, after, gradient = compute(model, 2, inputs, targets, state)
    double = exact(model)
    wanted_nll, wanted_after = double.compute_gradients(inputs, targets, state.double())
    torch.testing.assert_close(nll, wanted_nll, rtol=1e-6, atol=1e-6)
    assert distance(after, wanted_after) < 1e-6
    assert distance(gradient, double.flat.grad) < 1e-6


def test_any_number_of_threads_gives_the_same_bits() -> None:
    model = make(28, 70)
    minibatch = draw(model, 19, 9)
    alone = compute(model, 1, *minibatch)
    for num_threads in (2, 3):
        together = compute(model, num_threads, *minibatch)
        assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_training_follows_the_curve_of_the_uncompiled_network() -> None:
    losses = {}
    for may_compile in (True, False):
        model = ScratchRNN(28, 64, "tanh", torch.Generator().manual_seed(0))
        model.may_compile = may_compile
        optimizer, state, curve = torch.optim.SGD(model.parameters(), lr=0.5), model.initial_state(8), []
        for seed in range(30):
            inputs, _, _ = draw(model, 8, 20, seed)
            nll, state = model.compute_gradients(inputs, inputs.roll(1, 1), state)
            optimizer.step()
            curve.append(float(nll.sum()))
        losses[may_compile] = curve
    assert losses[True] == pytest.approx(losses[False], rel=1e-4)
    assert losses[True][-1] < losses[True][0]


@pytest.mark.parametrize(("num_hiddens", "batch_size"), [(5, 1), (70, 11), (150, 1)])
def test_scoring_step_by_step_is_scoring_at_once(num_hiddens: int, batch_size: int) -> None:
    model = make(29, num_hiddens)
    inputs, _, state = draw(model, batch_size, 7)
    logits, after = model(inputs, state)
    wanted, wanted_after = exact(model)(inputs, state.double())
    assert logits.shape == wanted.shape
    assert distance(logits, wanted) < 1e-6
    assert distance(after, wanted_after) < 1e-6
    step = model.step_fn(state)
    for t in range(inputs.shape[1]):
        assert torch.equal(step(inputs[:, t]), logits[:, t])
    first, between = model(inputs[:, :3], state)
    second, last = model(inputs[:, 3:], between)
    assert torch.equal(torch.cat([first, second], 1), logits)
    assert torch.equal(last, after)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("num_prefixes", [1, 3, 37])
def test_greedy_texts_take_the_likeliest_token_at_each_step(num_prefixes: int, num_threads: int) -> None:
    model = make(11, 40)
    prefixes = [[1 + n % 10, 3, 1 + n % 7] for n in range(num_prefixes)]
    with threads(num_threads):
        texts = continue_prefixes(model, prefixes, 20)
    for prefix, text in zip(prefixes, texts, strict=True):
        logits, _ = model(torch.tensor([prefix + text]), model.initial_state(1))
        assert text == (logits[0, len(prefix) - 1 : -1, 1:].argmax(1) + 1).tolist()


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    model = make(7, 5)
    inputs, targets, state = draw(model, 2, 3)
    for wrong in (7, -1):
        bad = inputs.clone()
        bad[1, 2] = wrong
        with pytest.raises(IndexError, match="outside the vocabulary"):
            model.compute_gradients(bad, targets, state)
        with pytest.raises(IndexError, match="outside the vocabulary"):
            model.compute_gradients(inputs, bad, state)
        with pytest.raises(IndexError, match="outside the vocabulary"):
            model(bad, state)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_give_a_loss_that_is_not(bad: float) -> None:
    for activation in ("tanh", "relu"):
        model = make(7, 5, activation)
        with torch.no_grad():
            model.named_weights()["W_hq"][2, 3] = bad
        nll, _ = model.compute_gradients(*draw(model, 2, 3))
        assert not torch.isfinite(nll.sum())


def test_weights_that_change_are_seen() -> None:
    model = make(7, 5)
    inputs, targets, state = draw(model, 2, 3)
    before, _ = model(inputs, state)
    old, _ = model.compute_gradients(inputs, targets, state)
    with torch.no_grad():
        model.flat.mul_(2)
    after, _ = model(inputs, state)
    new, _ = model.compute_gradients(inputs, targets, state)
    assert not torch.equal(before, after)
    assert not torch.equal(old, new)


def test_a_copy_learns_by_itself() -> None:
    model = make(7, 5)
    inputs, targets, state = draw(model, 2, 3)
    with threads(2), model.thread_team():
        model.compute_gradients(inputs, targets, state)
        gradient, twin = model.flat.grad.clone(), copy.deepcopy(model)
        with torch.no_grad():
            twin.flat.mul_(3)
        twin.compute_gradients(inputs, targets, state)
        assert torch.equal(model.flat.grad, gradient)
        assert not torch.equal(twin.flat.grad, gradient)


def test_a_state_that_was_returned_is_not_overwritten() -> None:
    model = make(7, 5)
    inputs, targets, state = draw(model, 2, 3)
    kept, given = state.clone(), model.compute_gradients(inputs, targets, state)[1]
    first = given.clone()
    model.compute_gradients(targets, inputs, given)
    assert torch.equal(given, first)
    assert torch.equal(state, kept)


_BITS = """
import hashlib, torch
from seqlm.rnn.scratch import ScratchRNN
torch.set_num_threads(1)
model = ScratchRNN(28, 150, "tanh", torch.Generator().manual_seed(0))
ids = torch.randint(0, 28, (20, 35), generator=torch.Generator().manual_seed(1))
model.compute_gradients(ids, ids.roll(1, 1), model.initial_state(20))
logits, _ = model(ids, model.initial_state(20))
from seqlm.rnn.compiled.tiles import WIDTH
print(WIDTH, hashlib.sha256(model.flat.grad.numpy().tobytes() + logits.contiguous().numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_other_vector_instructions_give_the_same_bits() -> None:
    wide, narrow = printed_with_each_width(_BITS)
    assert wide == narrow
