"""LSTM and GRU from their equations: against automatic differentiation, and the compiled loops against them."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from compiled_networks import compute, distance, exact, printed_with_each_width, threads
from seqlm.rnn.building import build_network, init_network, load_network, save_network
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.gated import GatedRNN
from seqlm.rnn.generation import SamplingConfig, continue_prefixes
from seqlm.rnn.network import RandomNoise
from seqlm.rnn.settings import NetworkSettings

V, H, B, T = 7, 5, 3, 6
FORMS = {
    "one layer": {},
    "one-hot, three layers": {"num_layers": 3},
    "learned": {"embedding": "learned", "embedding_size": 4},
    "learned, dropout": {"embedding": "learned", "embedding_size": 4, "num_layers": 2, "dropout": 0.4},
    "one-hot, dropout": {"num_layers": 2, "dropout": 0.4},
    "tied": {"embedding": "learned", "tie_weights": True, "num_layers": 2, "dropout": 0.2},
}


def make_settings(model: str, **changes: object) -> NetworkSettings:
    values = {
        "model": model, "activation": "tanh", "num_hiddens": H, "num_layers": 1, "embedding": "one_hot",
        "embedding_size": None, "tie_weights": False, "dropout": 0.0,
    }  # fmt: skip
    return NetworkSettings.model_validate(values | changes)


def make(chosen: NetworkSettings, vocab_size: int = V, dtype: torch.dtype = torch.float64) -> GatedRNN:
    """Return a network of weights so large that every term of the gradients counts, compiled where dtype is float."""
    model = GatedRNN.of(chosen, vocab_size).to(dtype)
    model.compiles_from = 1
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        model.flat.copy_(
            torch.randn(model.flat.shape, generator=generator, dtype=torch.float64) / chosen.num_hiddens**0.5
        )
    assert model.is_compiled == (dtype == torch.float32)
    return model


def oracle(chosen: NetworkSettings, model: GatedRNN) -> FrameworkRNN:
    """Return the framework's network of the same weights."""
    framework = init_network(chosen, model.vocab_size, 0).to(model.flat.dtype)
    framework.load_weights(model.weights())
    return framework


def draw(model: GatedRNN, lanes: int = B, num_steps: int = T, seed: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, model.vocab_size, (lanes, num_steps + 1), generator=generator)
    shape = model.initial_state(lanes).shape
    return ids[:, :-1], ids[:, 1:], torch.randn(shape, generator=generator, dtype=torch.float64).to(model.flat.dtype)


def draws(lanes: int) -> RandomNoise:
    return RandomNoise(torch.Generator().manual_seed(3), lanes, slice(0, lanes))


class Doubled:
    """Masks in double precision with the values of those drawn in single precision."""

    def __init__(self, inner: RandomNoise) -> None:
        self._inner = inner

    def mask(self, hidden: Tensor, dropout: float) -> Tensor:
        return self._inner.mask(hidden.float(), dropout).to(hidden.dtype)

    def keep(self, num_steps: int) -> Tensor | None:
        return self._inner.keep(num_steps)


def framework_state(state: Tensor, model: str) -> list:
    """Return a state (L, P, B, h) as the framework's layers have it."""
    return [(layer[0][None], layer[1][None]) if model == "lstm" else layer for layer in state]


def as_gated(state: list) -> Tensor:
    return torch.stack([torch.cat(layer) if isinstance(layer, tuple) else layer for layer in state])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gradients_equal_those_of_automatic_differentiation(kind: str, form: str) -> None:
    chosen = make_settings(kind, **FORMS[form])
    model = make(chosen)
    inputs, targets, state = draw(model)
    nats, after = model.compute_gradients(inputs, targets, state, draws(B))
    framework = oracle(chosen, model)
    wanted, wanted_after = framework.compute_gradients(inputs, targets, framework_state(state, kind), draws(B))
    torch.testing.assert_close(nats, wanted, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(after, as_gated(wanted_after), rtol=1e-10, atol=1e-12)
    for name, parameter in framework.named_parameters():
        torch.testing.assert_close(model._views(model.flat.grad)[name], parameter.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_compiled_gradients_are_those_of_the_framework_in_single_precision(kind: str, form: str) -> None:
    chosen = make_settings(kind, **FORMS[form] | {"num_hiddens": 70})
    model = make(chosen, 29, torch.float32)
    inputs, targets, state = draw(model, 11, 9)
    nats, after, gradient = compute(model, 2, inputs, targets, state, draws(11))
    framework = oracle(chosen, model)
    wanted, wanted_after = framework.compute_gradients(inputs, targets, framework_state(state, kind), draws(11))
    torch.testing.assert_close(nats.float(), wanted, rtol=1e-5, atol=1e-5)
    assert distance(after, as_gated(wanted_after)) < 1e-5
    for name, parameter in framework.named_parameters():
        assert distance(model._views(gradient)[name], parameter.grad) < 1e-5


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["lstm", "gru"]), vocab_size=st.integers(2, 70), num_hiddens=st.integers(1, 70),
    embedding_size=st.integers(0, 70), num_layers=st.integers(1, 3), lanes=st.integers(1, 19),
    num_steps=st.integers(1, 20), dropout=st.sampled_from([0.0, 0.5]), num_threads=st.integers(1, 3),
)  # fmt: skip
def test_compiled_gradients_of_any_shape_are_those_of_double_precision(
    kind: str, vocab_size: int, num_hiddens: int, embedding_size: int, num_layers: int, lanes: int, num_steps: int,
    dropout: float, num_threads: int,
) -> None:  # fmt: skip
    learned = {"embedding": "learned", "embedding_size": embedding_size} if embedding_size else {}
    chosen = make_settings(kind, num_hiddens=num_hiddens, num_layers=num_layers, dropout=dropout, **learned)
    model = make(chosen, vocab_size, torch.float32)
    inputs, targets, state = draw(model, lanes, num_steps)
    nats, after, gradient = compute(model, num_threads, inputs, targets, state, draws(lanes))
    double = exact(model)
    wanted = double.compute_gradients(inputs, targets, state.double(), Doubled(draws(lanes)))
    torch.testing.assert_close(nats.double(), wanted[0], rtol=1e-5, atol=1e-5)
    assert distance(after, wanted[1]) < 1e-5
    assert distance(gradient, double.flat.grad) < 1e-5 or float(double.flat.grad.norm()) < 1e-6


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_any_number_of_threads_gives_the_same_bits(kind: str) -> None:
    chosen = make_settings(kind, num_hiddens=70, **FORMS["learned, dropout"] | {"num_layers": 3})
    model = make(chosen, 28, torch.float32)
    minibatch = draw(model, 19, 20)
    alone = compute(model, 1, *minibatch, draws(19))
    with threads(1):
        read_alone = model(minibatch[0], minibatch[2])
    for num_threads in (2, 3):
        together = compute(model, num_threads, *minibatch, draws(19))
        assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
        with threads(num_threads):
            read_together = model(minibatch[0], minibatch[2])
        assert all(torch.equal(one, other) for one, other in zip(read_alone, read_together, strict=True))


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("lanes", [1, 11, 150])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_scoring_step_by_step_is_scoring_at_once(kind: str, lanes: int, num_threads: int) -> None:
    model = make(make_settings(kind, num_hiddens=37, **FORMS["learned, dropout"]), 29, torch.float32)
    inputs, targets, state = draw(model, lanes, 150 if lanes == 1 else 7)
    with threads(num_threads):
        logits, after = model(inputs, state)
        wanted, wanted_after = exact(model)(inputs, state.double())
        assert distance(logits, wanted) < 1e-5
        assert distance(after, wanted_after) < 1e-5
        step = model.step_fn(state)
        for t in range(inputs.shape[1]):
            assert torch.equal(step(inputs[:, t]), logits[:, t])
        first, between = model(inputs[:, :3], state)
        second, last = model(inputs[:, 3:], between)
    assert torch.equal(torch.cat([first, second], 1), logits)
    assert torch.equal(last, after)
    nats, trained = model.compute_gradients(inputs, targets, state)
    assert torch.equal(trained, after)
    losses = -torch.log_softmax(logits.double(), 2).gather(2, targets[:, :, None])[:, :, 0]
    torch.testing.assert_close(nats.double(), losses, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_greedy_texts_take_the_likeliest_token_at_each_step(kind: str, num_threads: int) -> None:
    model = make(make_settings(kind, num_hiddens=40, num_layers=2), 11, torch.float32)
    prefixes = [[1 + n % 10, 3, 1 + n % 7] for n in range(20)]
    with threads(num_threads):
        texts = continue_prefixes(model, prefixes, 20, SamplingConfig(), 0)
    for prefix, text in zip(prefixes, texts, strict=True):
        logits, _ = model(torch.tensor([prefix + text]), model.initial_state(1))
        assert text == (logits[0, len(prefix) - 1 : -1, 1:].argmax(1) + 1).tolist()


def test_weights_pass_between_the_framework_and_the_equations() -> None:
    # Drawn by the framework's rules, whichever of the two computes: equal seeds, equal weights.
    for form in FORMS.values():
        chosen = make_settings("lstm", **form)
        small, large = (build_network(chosen.model_copy(update={"num_hiddens": size}), V, 5) for size in (6, 128))
        assert isinstance(small, FrameworkRNN)
        assert isinstance(large, GatedRNN)
        drawn = init_network(chosen.model_copy(update={"num_hiddens": 128}), V, 5).weights()
        assert drawn.keys() == large.weights().keys()
        assert all(torch.equal(weight, large.weights()[name]) for name, weight in drawn.items())


def test_a_stored_network_is_compiled_where_that_repays(tmp_path: Path) -> None:
    chosen = make_settings("lstm", **FORMS["learned, dropout"] | {"num_hiddens": 128})
    drawn = init_network(chosen, V, 5)
    save_network(tmp_path, "x", chosen, V, drawn.weights())
    loaded = load_network(tmp_path, "x", torch.device("cpu"))
    assert isinstance(loaded, GatedRNN)
    ids = draw(loaded)[0]
    torch.testing.assert_close(loaded(ids, loaded.initial_state(B))[0], drawn(ids, drawn.initial_state(B))[0])


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    model = make(make_settings("lstm", **FORMS["learned"]), V, torch.float32)
    inputs, targets, state = draw(model)
    bad = inputs.clone()
    bad[1, 2] = V
    with pytest.raises(IndexError, match="outside the vocabulary"):
        model.compute_gradients(bad, targets, state)
    with pytest.raises(IndexError, match="outside the vocabulary"):
        model(bad, state)


_BITS = """
import hashlib, torch
from seqlm.rnn.compiled.tiles import WIDTH
from seqlm.rnn.gated import GatedRNN
from seqlm.rnn.network import RandomDraws
torch.set_num_threads(1)
print(WIDTH)
for kind in ("lstm", "gru"):
    model = GatedRNN(28, model=kind, num_hiddens=150, num_layers=2, embedding_size=20, tie_weights=False, dropout=0.4)
    values = torch.randn(model.flat.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 12
    with torch.no_grad():
        model.flat.copy_(values)
    ids = torch.randint(0, 28, (20, 35), generator=torch.Generator().manual_seed(1))
    draws = RandomDraws(torch.Generator().manual_seed(3), 20, slice(0, 20))
    nats, _ = model.compute_gradients(ids, ids.roll(1, 1), model.initial_state(20), draws)
    logits, _ = model(ids, model.initial_state(20))
    found = (model.flat.grad, nats, logits)
    print(hashlib.sha256(b"".join(tensor.contiguous().numpy().tobytes() for tensor in found)).hexdigest())
"""


@pytest.mark.slow
def test_other_vector_instructions_give_the_same_bits() -> None:
    wide, narrow = printed_with_each_width(_BITS)
    assert wide == narrow
