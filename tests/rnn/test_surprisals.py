"""Surprisals without a table of logits, on vocabularies of thousands, against double precision."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from seqlm.rnn.compiled.tensors import row_nats
from seqlm.rnn.framework import FrameworkRNN
from seqlm.rnn.gated import GatedRNN
from seqlm.rnn.network import Network
from seqlm.rnn.scoring import is_large, stream_nll, window_nll
from seqlm.rnn.scratch import ScratchRNN
from seqlm.rnn.surprisals import surprisals

VOCAB = 3001  # not a multiple of any width of registers


def drawn(network: torch.nn.Module, size: float = 0.3) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, size, generator=generator)
    return network


def framework(**options: object) -> torch.nn.Module:
    common = {"num_layers": 1, "embedding_size": None, "tie_weights": False, "dropout": 0.0, "activation": "tanh"}
    return drawn(FrameworkRNN(VOCAB, num_hiddens=24, seed=0, **common | options))


def gated(model: str, embedding_size: int | None) -> torch.nn.Module:
    return drawn(
        GatedRNN(
            VOCAB, model=model, num_hiddens=130, num_layers=2, embedding_size=embedding_size, tie_weights=False,
            dropout=0.0,
        ),
        0.1,
    )  # fmt: skip


def scratch(num_hiddens: int) -> torch.nn.Module:
    return drawn(ScratchRNN(VOCAB, num_hiddens, "tanh", torch.Generator()), 0.1)


NETWORKS = {
    "scratch, compiled": lambda: scratch(130),
    "scratch, plain": lambda: scratch(24),
    "lstm, compiled": lambda: gated("lstm", 20),
    "gru of one-hot vectors, compiled": lambda: gated("gru", None),
    "the framework's rnn of one-hot vectors": lambda: framework(model="rnn"),
    "the framework's relu": lambda: framework(model="rnn", activation="relu"),
    "the framework's lstm of one-hot vectors": lambda: framework(model="lstm", num_layers=2),
    "the framework's gru": lambda: framework(model="gru", embedding_size=7),
}


def by_logits(network: Network, ids: torch.Tensor) -> torch.Tensor:
    """Return -log p of tokens 2..T of lanes ``(B, T)`` by PyTorch's cross entropy of the logits in double precision."""
    with torch.no_grad():
        logits, _ = network(ids[:, :-1], network.initial_state(len(ids)))
    return F.cross_entropy(logits.double().flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(len(ids), -1)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_scores_a_large_vocabulary_as_its_logits_say(name: str) -> None:
    network, ids = NETWORKS[name](), np.random.default_rng(0).integers(0, VOCAB, 150)
    assert is_large(VOCAB)
    assert not is_large(1024)
    wanted = by_logits(network, torch.from_numpy(ids)[None])[0].numpy()
    # Products of other sizes round the logits otherwise where they are PyTorch's; the compiled ones never.
    close = 1e-12 if "compiled" in name else 1e-5
    for num_threads in (1, 2):
        torch.set_num_threads(num_threads)
        assert stream_nll(network, ids) == pytest.approx(wanted, rel=close)
        assert stream_nll(network, ids, chunk=37) == pytest.approx(wanted, rel=close)
    torch.set_num_threads(1)
    windows = torch.from_numpy(ids[:144].reshape(16, 9))
    assert window_nll(network, windows) == pytest.approx(by_logits(network, windows).numpy(), rel=close)


@pytest.mark.parametrize("name", NETWORKS)
def test_skipped_tokens_leave_the_state_of_read_ones(name: str) -> None:
    network, ids = NETWORKS[name](), torch.randint(0, VOCAB, (2, 70), generator=torch.Generator().manual_seed(0))
    read, skipped = network(ids, network.initial_state(2))[1], network.advance_state(ids, network.initial_state(2))
    for one, other in zip(read, skipped, strict=True):
        for part, other_part in zip(one, other, strict=True):
            torch.testing.assert_close(part, other_part, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("vocab_size", [2, 5, 31, 32, 33, 256, 5488])
def test_rows_of_logits_are_summed_up_in_double_precision(vocab_size: int) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(0, 30, (50, vocab_size)).astype(np.float32))
    logits[0] += 1000  # far from zero
    logits[1, 0] = -torch.inf  # impossible
    targets = torch.from_numpy(rng.integers(0, vocab_size, 50))
    targets[2:4] = 0
    logits[3, 0] = torch.inf
    logits[4, -1] = torch.nan
    for num_threads in (1, 3):
        found = row_nats(logits, targets, num_threads).numpy()
        assert found == pytest.approx(surprisals(logits, targets), rel=1e-12, abs=1e-12, nan_ok=True)
    assert np.isnan(found[3:5]).all()


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(IndexError, match="outside the vocabulary of 5"):
        row_nats(torch.zeros(2, 5), torch.tensor([1, 5]), 1)
    network, ids = scratch(130), torch.tensor([[1, VOCAB]])
    with pytest.raises(IndexError, match=f"outside the vocabulary of {VOCAB}"):
        network.nats(ids[:, :1], ids[:, 1:], network.initial_state(1))
