"""The transformer: causal, the same token by token, and the same as PyTorch's encoder with a causal mask."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from compiled_networks import network_settings
from seqlm.networks import torch_network, transformer
from seqlm.networks.network import stream_nll
from seqlm.networks.transformer import Transformer, rotate

V = 6


def network(window: int, **changes: object) -> Transformer:
    """Return a network in double precision, with weights so large that every token and position matters."""
    options = {"num_layers": 2, "num_heads": 2, "embedding": "learned", "num_steps": window} | changes
    made = Transformer(network_settings("transformer", **options), V).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.3)
    return made


def text(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, V, shape, generator=torch.Generator().manual_seed(seed))


def first_of_window(position: int, window: int) -> int:
    """Return the first token that a prediction after ``position`` depends on.

    With a window of 4 the windows begin at 0, 2, 4, ...: the positions 0 to 3 are read in the first, 4 and 5 in the
    second, 6 and 7 in the third.
    """
    stride = window - window // 2
    return max(-(-(position + 1 - window) // stride), 0) * stride


@settings(deadline=None, max_examples=30)
@given(window=st.integers(1, 9), size=st.integers(2, 40), at_once=st.integers(1, 45))
@torch.no_grad()
def test_scores_are_those_of_the_windows_whatever_is_read_at_once(window: int, size: int, at_once: int) -> None:
    made, ids = network(window), text(size)
    wanted = []
    for position, target in enumerate(ids[1:].tolist()):
        context = ids[None, first_of_window(position, window) : position + 1]
        logits, _ = made(context, made.initial_state(1))
        wanted.append(-float(logits[0, -1].log_softmax(0)[target]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_network, "_MAX_STEPS", at_once)
        patch.setattr(transformer, "_TOKENS_AT_ONCE", at_once // 2)
        assert stream_nll(made, ids.numpy()) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("num_read", [0, 1, 4, 5, 6, 11])
@pytest.mark.parametrize("window", [2, 5])
@torch.no_grad()
def test_generation_gives_the_logits_of_reading(window: int, num_read: int) -> None:
    made, ids = network(window), text(3, 24)
    state = made.initial_state(3)
    if num_read:
        state = made.advance_state(ids[:, :num_read], state)
    step, wanted = made.step_fn(state), made(ids[:, num_read:], state)[0]
    for index, tokens in enumerate(ids[:, num_read:].unbind(1)):
        np.testing.assert_allclose(step(tokens), wanted[:, index], rtol=1e-9, atol=1e-12)


def fixed_mask(_size: int, _dropout: float) -> np.ndarray:
    """Drop the same units each time: half of those of the first row, and the other half of those of the second."""
    mask = np.array([2, 0, 0, 2, 2, 0, 2, 0], np.float32)
    return np.stack([mask, 2 - mask])[:, None]  # (B, 1, h)


@pytest.mark.parametrize("num_read", [0, 3, 9])
@pytest.mark.parametrize("tied", [False, True])
def test_gradients_are_those_of_finite_differences(num_read: int, tied: bool) -> None:
    made, ids = network(5, dropout=0.5, tie_weights=tied), text(2, 17)
    state = made.advance_state(ids[:, :num_read], made.initial_state(2)) if num_read else made.initial_state(2)
    names, weights = zip(*made.named_parameters(), strict=True)

    def logits(*values: Tensor) -> Tensor:
        changed = dict(zip(names, values, strict=True))
        return torch.func.functional_call(made, changed, (ids[:, num_read:], state, fixed_mask))[0]

    assert torch.autograd.gradcheck(logits, weights, fast_mode=True)


@torch.no_grad()
def test_rows_of_a_minibatch_keep_their_dropout_masks_in_all_windows() -> None:
    made, ids = network(4, dropout=0.5), text(1, 11)
    logits, _ = made(ids.expand(2, -1), made.initial_state(2), fixed_mask)
    for row in range(2):
        alone, _ = made(ids, made.initial_state(1), lambda *_, row=row: fixed_mask(8, 0.5)[row : row + 1])
        torch.testing.assert_close(alone[0], logits[row], rtol=1e-9, atol=1e-12)
    assert not torch.allclose(logits[0], logits[1])


NAMES_IN_PYTORCH = {
    "attention_norm": "norm1", "mlp_norm": "norm2", "attention_output": "self_attn.out_proj", "mlp_input": "linear1",
    "mlp_output": "linear2", "attention_input.": "self_attn.in_proj_",
}  # fmt: skip


def pytorch_name(name: str) -> str:
    for ours, theirs in NAMES_IN_PYTORCH.items():
        name = name.replace(ours, theirs)
    return name


@torch.no_grad()
def test_without_rotations_the_layers_are_pytorch_s_encoder_with_a_causal_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "rotate", lambda vectors, _: vectors)
    made, ids = network(9, num_layers=3), text(4, 9)
    layer = nn.TransformerEncoderLayer(
        8, 2, 32, dropout=0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    encoder = nn.TransformerEncoder(layer, 3, norm=made.norm, enable_nested_tensor=False)
    weights = {pytorch_name(name): weight for name, weight in made.state_dict().items() if name.startswith("layers")}
    encoder.load_state_dict(weights | {f"norm.{name}": weight for name, weight in made.norm.state_dict().items()})
    mask = nn.Transformer.generate_square_subsequent_mask(9, dtype=torch.float64)
    hidden = encoder(made.embedding(ids), mask=mask, is_causal=True)
    logits, _ = made(ids, made.initial_state(4))
    torch.testing.assert_close(logits, made.output(hidden), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 6, 7])
def test_rotations_show_the_distance_between_two_positions_and_nothing_else(size: int) -> None:
    angles = torch.arange(9.0, dtype=torch.float64)[:, None] * torch.tensor([1.0, 0.1, 0.01])[: size // 2]
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, size, dtype=torch.float64, generator=generator)
    rotation = angles.cos(), angles.sin()
    products = rotate(query.expand(9, -1), rotation) @ rotate(key.expand(9, -1), rotation).T  # (9, 9)
    for offset in range(-8, 9):
        diagonal = products.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(products[0, 0], query @ key)
    assert size == 1 or products[0].diff().abs().min() > 1e-3


def test_pairs_of_components_turn_at_speeds_from_1_to_a_thousandth() -> None:
    made = network(9)
    # Heads of size 4 have two pairs: the second turns by 1000^(-1/2) of what the first does.
    angles = torch.arange(9.0, dtype=torch.float64)[:, None] * torch.tensor([1, 1000**-0.5], dtype=torch.float64)
    torch.testing.assert_close((made._cosines, made._sines), (angles.cos(), angles.sin()), rtol=1e-6, atol=1e-6)


def test_tied_weights_are_one_parameter() -> None:
    tied, untied = network(4, tie_weights=True), network(4)
    assert set(untied.named_weights()) - set(tied.named_weights()) == {"output.weight"}
    assert tied.output.weight is tied.embedding.weight
