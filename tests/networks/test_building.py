"""Networks from settings, stored and read back, also without PyTorch, and a new kind of network."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from compiled_networks import network_settings
from project.templates import minimal_gated
from seqlm.core.errors import DataError
from seqlm.core.stored import write_checksummed
from seqlm.models.networks import dynamic_nll, gradient_rms
from seqlm.networks.architectures import ARCHITECTURES, Architecture
from seqlm.networks.building import build_network, open_network, save_network
from seqlm.networks.network import Network, continue_prefixes, stream_nll
from seqlm.networks.settings import NetworkSettings
from small_training import config, trained
from smoke import ROOT
from stages_by_hand import run_python, succeeded

VOCAB = (6, "abc")
MGU = {"activation": "tanh", "num_layers": 1, "num_heads": 1, "embedding": "one_hot", "truncation": "regular"}


@pytest.fixture
def mgu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a kind of network: its entry and the module of its class."""
    monkeypatch.setitem(ARCHITECTURES, "mgu", Architecture("seqlm.networks.minimal_gated:MinimalGatedRNN", MGU))
    monkeypatch.setitem(sys.modules, "seqlm.networks.minimal_gated", minimal_gated)


def stored(folder: Path, settings: NetworkSettings, run: str = "x") -> dict[str, np.ndarray]:
    network = build_network(settings, 6, 0)
    save_network(folder, run, settings, VOCAB, network.weight_copies())
    return network.weight_copies()


open_on_cpu = partial(open_network, vocab=VOCAB, device="cpu", num_threads=1)


def rewrite_settings(folder: Path, **changes: object) -> None:
    """Change the settings in a stored description, as another version would have written them; ... removes one."""
    description = json.loads((folder / "model.json").read_text())
    del description["checksum"]
    changed = description["metadata"]["network"] | changes
    description["metadata"]["network"] = {name: value for name, value in changed.items() if value is not ...}
    write_checksummed(folder / "model.json", description)


@pytest.mark.parametrize("engine", ["framework", "auto"])
def test_an_output_matrix_that_is_the_embedding_is_drawn_smaller(engine: str) -> None:
    settings = network_settings("gru", embedding="learned", tie_weights=True, num_hiddens=64, engine=engine)
    weights = build_network(settings, 500, 0).weight_copies()
    # 500 x 64 numbers from N(0, 1 / 64).
    assert float(weights["embedding.weight"].std()) == pytest.approx(1 / 8, rel=0.02)


def test_what_a_transformer_adds_up_is_drawn_smaller() -> None:
    settings = network_settings("transformer", embedding="learned", num_layers=2, num_hiddens=128)
    weights = build_network(settings, 6, 0).weight_copies()
    # Two layers add two parts each, so a root of four smaller.
    for part, std in (("input", 0.05), ("output", 0.025)):
        for name in ("attention", "mlp"):
            assert float(weights[f"layers.1.{name}_{part}.weight"].std()) == pytest.approx(std, rel=0.02)


def test_weights_come_back_and_changed_files_are_refused(tmp_path: Path) -> None:
    made = stored(tmp_path, network_settings("gru", embedding="learned", tie_weights=True, engine="framework"))
    loaded = open_on_cpu(tmp_path, "x").weights
    assert all(np.array_equal(one, other) for one, other in zip(loaded, made.values(), strict=True))
    with pytest.raises(DataError, match="holds the run 'x', not 'y'"):
        open_on_cpu(tmp_path, "y")
    for other in ((7, VOCAB[1]), (6, "the tokens of another text")):
        with pytest.raises(DataError, match="built with a different vocabulary: train again"):
            open_on_cpu(tmp_path, "x", vocab=other)
    weights, description = tmp_path / "weights.safetensors", tmp_path / "model.json"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match="does not match its SHA-256"):
        open_on_cpu(tmp_path, "x")
    description.write_text(description.read_text().replace('"format": 10', '"format": 4'))
    with pytest.raises(DataError, match="not in format 10"):
        open_on_cpu(tmp_path, "x")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tie_weights": ...}, r"network\.tie_weights: missing: train again"),
        ({"num_experts": 4}, r"network\.num_experts: unknown setting.*: train again"),
        ({"model": "mamba"}, r"network\.model = 'mamba': should be one of .*: train again"),
    ],
)
def test_another_version_asks_to_train_again(changes: dict[str, object], complaint: str, tmp_path: Path) -> None:
    for engine in ("auto", "framework"):
        stored(tmp_path, network_settings("gru", engine=engine))
        rewrite_settings(tmp_path, **changes)
        with pytest.raises(DataError, match=complaint) as caught:
            open_on_cpu(tmp_path, "x")
        assert caught.value.exit_code == 3


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
        stored(tmp_path / model, network_settings(model, **changes), model)
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
