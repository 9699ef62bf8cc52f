"""Scoring streams and windows: in chunks, and with vocabularies of thousands, against double precision."""

import threading

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from compiled_networks import network_settings, scratch_network
from seqlm.networks import torch_network
from seqlm.networks.building import build_network
from seqlm.networks.compiled import network as compiled
from seqlm.networks.compiled.forward import nll_of_outputs
from seqlm.networks.compiled.tiles import WIDTH, empty_rows
from seqlm.networks.framework import FrameworkRNN
from seqlm.networks.network import Network, rows_nll, stream_nll
from seqlm.networks.scratch import ScratchRNN
from seqlm.networks.torch_network import nll

VOCAB = 3001  # not a multiple of any width of registers


def drawn(network: Network, size: float) -> Network:
    generator = torch.Generator().manual_seed(0)
    weights = network.named_weights()
    network.load_weights({n: (size * torch.randn(w.shape, generator=generator)).numpy() for n, w in weights.items()})
    return network


def framework(model: str, vocab_size: int = VOCAB, **options: object) -> Network:
    return drawn(FrameworkRNN(network_settings(model, num_hiddens=24, **options), vocab_size), 0.3)


def gated(model: str, **options: object) -> Network:
    return drawn(build_network(network_settings(model, num_hiddens=130, num_layers=2, **options), VOCAB, 0), 0.1)


def scratch(num_hiddens: int, vocab_size: int = VOCAB) -> Network:
    return drawn(scratch_network(vocab_size, num_hiddens), 0.1)


NETWORKS = {
    "scratch, compiled": lambda: scratch(130),
    "scratch, plain": lambda: drawn(ScratchRNN(network_settings("scratch", num_hiddens=24), VOCAB), 0.1),
    "lstm, compiled": lambda: gated("lstm", embedding="learned", embedding_size=20),
    "gru of one-hot vectors, compiled": lambda: gated("gru"),
    "the framework's rnn of one-hot vectors": lambda: framework("rnn"),
    "the framework's relu": lambda: framework("rnn", activation="relu"),
    "the framework's lstm of one-hot vectors": lambda: framework("lstm", num_layers=2),
    "the framework's gru": lambda: framework("gru", embedding="learned", embedding_size=7),
}


def by_logits(network: Network, ids: np.ndarray) -> np.ndarray:
    """Return -log p of tokens 2..T of rows ``(B, T)`` by PyTorch's cross entropy of the logits in double precision."""
    logits, _ = network.logits(ids[:, :-1], network.initial_state(len(ids)))
    targets = torch.from_numpy(ids[:, 1:]).flatten()
    losses = F.cross_entropy(torch.from_numpy(logits).double().flatten(0, 1), targets, reduction="none")
    return losses.view(len(ids), -1).numpy()


@pytest.mark.parametrize("size", [0, 1])
def test_a_stream_without_a_second_token_has_no_scores(size: int) -> None:
    assert stream_nll(scratch(8, 6), np.zeros(size, np.int64)).shape == (0,)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_scores_a_large_vocabulary_as_its_logits_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, ids = NETWORKS[name](), np.random.default_rng(0).integers(0, VOCAB, 150)
    wanted = by_logits(network, ids[None])[0]
    # PyTorch's products of other sizes round the logits otherwise; the compiled ones never do.
    close = 1e-12 if "compiled" in name else 1e-5
    for num_threads in (1, 2):
        network.num_threads = num_threads  # type: ignore[attr-defined]
        assert stream_nll(network, ids) == pytest.approx(wanted, rel=close)
    windows = ids[:144].reshape(16, 9)
    wanted = by_logits(network, windows)
    assert rows_nll(network, windows) == pytest.approx(wanted, rel=close)
    # The state goes on from part to part of a long text.
    monkeypatch.setattr(compiled, "_TOKENS_AT_ONCE", 64)
    monkeypatch.setattr(torch_network, "_MAX_STEPS", 4)
    assert rows_nll(network, windows) == pytest.approx(wanted, rel=close)


@pytest.mark.parametrize("vocab_size", [2, 5, 31, 32, 33, 256, 5488, 100_000])
def test_losses_are_summed_up_in_double_precision(vocab_size: int) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(0, 30, (50, vocab_size)).astype(np.float32))
    logits[0] += 1000  # far from zero
    logits[1, 0] = -torch.inf  # impossible
    targets = torch.from_numpy(rng.integers(0, vocab_size, 50))
    targets[2:4] = 0
    logits[3, 0] = torch.inf
    logits[4, -1] = torch.nan
    wanted = F.cross_entropy(logits.double(), targets, reduction="none").numpy()
    # With weights of zero, the logits are the biases.
    weights = scratch_network(vocab_size, WIDTH)._packed_weights()
    weights.outputs[:] = 0
    found = []
    for row, target in zip(logits, targets, strict=True):
        weights.output_bias[:vocab_size] = row.numpy()
        found.append(nll_of_outputs(weights, empty_rows(1, 1, WIDTH), target[None, None].numpy(), 1)[0, 0])
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12, nan_ok=True)
    assert np.isnan(found[3:5]).all()
    assert nll(logits[None], targets[None])[0].numpy() == pytest.approx(wanted, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(("device", "num_threads", "in_main_thread"), [("cpu", 1, False), ("meta", 3, True)])
def test_only_on_a_cpu_do_threads_compute_one_item_each(device: str, num_threads: int, in_main_thread: bool) -> None:
    def compute(number: int) -> tuple[float, int, bool]:
        return (1 / number, torch.get_num_threads(), threading.current_thread() is threading.main_thread())

    imap = FrameworkRNN(network_settings("rnn"), 9).to(device).imap
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        found = list(imap(compute, range(1, 7)))
        assert found == [(1 / number, num_threads, in_main_thread) for number in range(1, 7)]
        assert torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError):
            list(imap(compute, [1, 0]))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
