"""Networks from settings, stored and read back, also without PyTorch, and a new kind of network."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from compiled_networks import network_settings
from seqlm.core.devices import resolve_device
from seqlm.core.errors import DataError
from seqlm.models.networks import dynamic_nll, gradient_rms
from seqlm.networks.architectures import ARCHITECTURES, Architecture
from seqlm.networks.building import build_network, open_network, save_network
from seqlm.networks.initial import mask, normal
from seqlm.networks.network import Network, continue_prefixes, stream_nll
from seqlm.networks.settings import NetworkSettings
from small_runs import change_stored
from small_training import config, trained
from smoke import ROOT
from stages_by_hand import run_python, succeeded
from templates import minimal_gated

VOCAB = (6, "abc")
MGU = {"activation": "tanh", "num_layers": 1, "num_heads": 1, "embedding": "one_hot", "truncation": "regular"}


@pytest.fixture
def mgu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a kind of network: its entry and the module of its class."""
    monkeypatch.setitem(ARCHITECTURES, "mgu", Architecture("seqlm.networks.minimal_gated:MinimalGatedRNN", MGU))
    monkeypatch.setitem(sys.modules, "seqlm.networks.minimal_gated", minimal_gated)


def store(folder: Path, settings: NetworkSettings, run: str = "x") -> None:
    save_network(folder, run, settings, VOCAB, build_network(settings, 6, 0).weight_copies())


open_on_cpu = partial(open_network, vocab=VOCAB, device="cpu", num_threads=1)


@pytest.mark.parametrize("engine", ["framework", "auto"])
def test_weights_start_as_in_the_book_and_tied_ones_smaller(engine: str) -> None:
    settings = network_settings("gru", embedding="learned", tie_weights=True, num_hiddens=64, engine=engine)
    weights = build_network(settings, 500, 0).weight_copies()
    # 500 x 64 numbers from N(0, 1 / 64).
    assert float(weights["embedding.weight"].std()) == pytest.approx(1 / 8, rel=0.02)
    network = build_network(network_settings("scratch", num_hiddens=512, engine=engine), 28, 0)
    weights = network.weight_copies()
    assert float(weights["W_hh"].std()) == pytest.approx(0.01, rel=0.02)
    assert not weights["b_h"].any()
    assert not weights["b_q"].any()
    # 28 * 512 + 512 * 512 + 512 + 512 * 28 + 28
    assert network.num_parameters == 291_356


def test_auto_takes_a_gpu_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == "cuda"


def test_normal_numbers_and_masks() -> None:
    values = normal(np.random.default_rng(0), 2.0, (500, 400))
    assert values.std() == pytest.approx(2, rel=0.01)
    assert abs(values.mean()) < 0.02
    # 95 % are within 1.96 standard deviations.
    assert np.mean(abs(values) < 3.92) == pytest.approx(0.95, abs=0.002)
    factors = mask(np.random.default_rng(0), 0.8, (500, 400))
    assert np.unique(factors).tolist() == [0, 1.25]
    assert factors.mean() == pytest.approx(1, abs=0.01)


def test_what_a_transformer_adds_up_is_drawn_smaller() -> None:
    settings = network_settings("transformer", embedding="learned", num_layers=2, num_hiddens=128)
    weights = build_network(settings, 6, 0).weight_copies()
    # Two layers add two parts each, so a root of four smaller.
    for part, std in (("input", 0.05), ("output", 0.025)):
        for name in ("attention", "mlp"):
            assert float(weights[f"layers.1.{name}_{part}.weight"].std()) == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize(
    ("run", "vocab", "complaint"),
    [
        ("y", VOCAB, "holds the run 'x', not 'y'"),
        ("x", (7, VOCAB[1]), "built with a different vocabulary: train again"),
        ("x", (6, "the tokens of another text"), "built with a different vocabulary: train again"),
    ],
)
def test_weights_belong_to_a_run_and_a_vocabulary(
    run: str, vocab: tuple[int, str], complaint: str, tmp_path: Path
) -> None:
    store(tmp_path, network_settings("gru"))
    with pytest.raises(DataError, match=complaint):
        open_on_cpu(tmp_path, run, vocab=vocab)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda settings: settings.pop("tie_weights"), r"network\.tie_weights: missing: train again"),
        (lambda settings: settings.update(num_experts=4), r"network\.num_experts: unknown setting.*: train again"),
        (lambda settings: settings.update(model="mamba"), "network.model = 'mamba': should be one of .*: train again"),
    ],
)
def test_another_version_asks_to_train_again(change: Callable, complaint: str, tmp_path: Path) -> None:
    store(tmp_path, network_settings("gru"))
    change_stored(tmp_path / "model.json", lambda value: change(value["metadata"]["network"]))
    with pytest.raises(DataError, match=complaint):
        open_on_cpu(tmp_path, "x")


@pytest.mark.parametrize(
    ("model", "changes", "complaint"),
    [
        ("rrn", {}, "should be one of .*lstm"),
        ("scratch", {"dropout": 0.1}, "model scratch needs dropout: 0.0"),
        ("lstm", {"activation": "relu"}, "model lstm needs activation: tanh"),
        ("transformer", {}, "model transformer needs embedding: learned"),
        ("transformer", {"embedding": "learned", "embedding_size": 8}, "needs embedding_size: null"),
        ("transformer", {"embedding": "learned", "num_heads": 3}, "num_heads must divide num_hiddens"),
        ("rnn", {"tie_weights": True}, "tie_weights needs embedding: learned"),
        ("rnn", {"embedding_size": 3}, "embedding_size belongs to embedding: learned"),
        ("rnn", {"embedding": "learned", "tie_weights": True, "embedding_size": 3}, "null or equal to num_hiddens"),
        ("mgu", {"num_layers": 2}, "model mgu needs num_layers: 1"),
    ],
)
@pytest.mark.usefixtures("mgu")
def test_networks_refuse_what_they_do_not_support(model: str, changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        network_settings(model, **changes)


@pytest.mark.usefixtures("mgu")
@pytest.mark.parametrize(
    "network_changes", [{"model": "mgu"}, {"model": "transformer", "embedding": "learned", "num_heads": 2}]
)
def test_a_network_of_automatic_differentiation_trains_scores_and_generates(
    network_changes: dict[str, object], tmp_path: Path
) -> None:
    run = config(num_epochs=12, optimizer="adamw", lr=0.05, dropout=0.1, num_hiddens=16, **network_changes)
    cycle = np.tile([1, 2, 3, 4, 5], 60)
    ended = trained(run, cycle)
    perplexities = [row.train_perplexity for row in ended.progress.history]
    assert perplexities[-1] < 1.2 < 1.5 < perplexities[0]

    save_network(tmp_path, "x", run, VOCAB, ended.network.weight_copies())
    network = open_on_cpu(tmp_path, "x")
    nll = stream_nll(network, cycle)
    assert nll == pytest.approx(stream_nll(ended.network, cycle))
    assert nll.mean() < 0.2
    assert continue_prefixes(network, np.array([[1, 2], [3, 4]]), 5).tolist() == [[3, 4, 5, 1, 2], [5, 1, 2, 3, 4]]
    nll, _ = network.token_nll(np.array([[1, 2]]), np.array([[2, 3]]), network.initial_state(1))
    assert nll[0] == pytest.approx(stream_nll(network, np.array([1, 2, 3])))

    # Dynamic evaluation learns a text that the training has not seen.
    other = np.tile([1, 3, 5, 2, 4], 60)
    roots = gradient_rms(network, cycle, segment_length=32, num_segments=20)
    assert [root.shape for root in roots] == [weight.shape for weight in network.weights]

    def descend(adapted: Network) -> None:
        norm = float(torch.cat([gradient.flatten() for gradient in adapted.gradients]).norm())
        for weight, gradient in zip(adapted.weights, adapted.gradients, strict=True):
            weight.sub_(gradient, alpha=0.2 / max(norm, 1.0))

    assert dynamic_nll(network, other, descend, update_every=10).mean() < 0.7 * stream_nll(network, other).mean()


RESULTS = """
import numpy as np
from seqlm.networks.network import continue_prefixes
from seqlm.networks.network import rows_nll, stream_nll
from seqlm.models.networks import dynamic_nll, dynamic_update, gradient_rms

def results(network):
    ids = np.random.default_rng(0).integers(1, 6, 300)
    roots = gradient_rms(network, ids, segment_length=32, num_segments=9)
    update = dynamic_update(0.01, 0.1, roots, network.copy().weights)
    found = [
        stream_nll(network, ids), rows_nll(network, ids.reshape(10, 30)),
        dynamic_nll(network, ids, update, update_every=20),
        continue_prefixes(network, np.array([[1, 2], [3, 4]]), 9),
    ]
    return repr([np.asarray(one).tolist() for one in found])
"""
WITHOUT_TORCH = f"""
import sys
from pathlib import Path
from seqlm.networks.building import open_network
{RESULTS}
for name in sys.argv[2:]:
    print(results(open_network(Path(sys.argv[1]) / name, name, (6, "abc"), "cpu", 2)))
assert "torch" not in sys.modules
"""
NETWORKS = {
    "scratch": {},
    "rnn": {"activation": "relu", "num_layers": 2},
    "gru": {"embedding": "learned", "embedding_size": 5},
    "lstm": {"embedding": "learned", "tie_weights": True, "num_layers": 2, "dropout": 0.4},
}


def test_pytorch_is_not_needed_and_changes_no_bit(tmp_path: Path) -> None:
    for model, changes in NETWORKS.items():
        store(tmp_path / model, network_settings(model, **changes), model)
    found = succeeded(run_python(WITHOUT_TORCH, tmp_path, *NETWORKS)).splitlines()
    with_torch: dict[str, object] = {}
    exec(RESULTS, with_torch)
    for model, printed in zip(NETWORKS, found, strict=True):
        network = build_network(network_settings(model, **NETWORKS[model]), 6, 0)
        assert printed == with_torch["results"](network)


def test_the_weights_load_into_plain_pytorch_as_the_documents_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = network_settings("lstm", num_layers=2, embedding="learned", embedding_size=5)
    network = build_network(settings, 9, 0)
    folder = tmp_path / "data/models/runs/lstm"
    save_network(folder, "lstm", settings, (9, "abc"), network.weight_copies())
    page = (ROOT / "docs/howto/training.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(page.split("```python\n")[1].split("```")[0], found := dict[str, torch.Tensor]())
    logits, _ = network.logits(np.array([[5, 2, 7]]), network.initial_state(1))
    torch.testing.assert_close(found["logits"].detach().numpy(), logits, rtol=1e-5, atol=1e-6)
