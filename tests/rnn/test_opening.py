"""Stored networks that run as compiled loops: scored, adapted and continued without PyTorch, with the same results."""

from pathlib import Path

import pytest
import torch

from compiled_networks import network_settings
from seqlm.core.errors import DataError
from seqlm.rnn.building import build_network, load_network, open_network, save_network
from stages_by_hand import run_python, succeeded

RESULTS = """
import numpy as np
from seqlm.rnn.array_network import continue_prefixes
from seqlm.rnn.array_network import stream_nll, window_nll
from seqlm.score.networks import DynamicRule, dynamic_nll, gradient_roots, trained_weights

def results(network):
    ids = np.random.default_rng(0).integers(1, 9, 300)
    roots = gradient_roots(network, ids, segment_length=10, num_segments=9)
    rule = DynamicRule(0.01, 0.1, roots, trained_weights(network))
    found = [
        stream_nll(network, ids), window_nll(network, ids.reshape(10, 30)),
        dynamic_nll(network, ids, update_every=20, update=rule.apply), continue_prefixes(network, [[1, 2], [3]], 9),
    ]
    return repr([np.asarray(one).tolist() for one in found])
"""
WITHOUT_TORCH = f"""
import sys
from pathlib import Path
from seqlm.rnn.building import open_network
{RESULTS}
for name in sys.argv[2:]:
    print(results(open_network(Path(sys.argv[1]) / name, name, "cpu", 2)))
assert "torch" not in sys.modules
"""
NETWORKS = {
    "scratch": {},
    "rnn": {"activation": "relu", "num_layers": 2},
    "gru": {"embedding": "learned", "embedding_size": 5},
    "lstm": {"embedding": "learned", "tie_weights": True, "num_layers": 2, "dropout": 0.4},
}


def store(folder: Path, model: str, **changes: object) -> None:
    settings = network_settings(model, **changes)
    network = build_network(settings, 9, 0)
    save_network(folder / model, model, settings, 9, network.weights(), network.engine)


def test_pytorch_is_not_needed_and_changes_no_bit(tmp_path: Path) -> None:
    for model, changes in NETWORKS.items():
        store(tmp_path, model, **changes)
    found = succeeded(run_python(WITHOUT_TORCH, tmp_path, *NETWORKS)).splitlines()
    with_torch: dict[str, object] = {}
    exec(RESULTS, with_torch)
    for model, printed in zip(NETWORKS, found, strict=True):
        assert printed == with_torch["results"](load_network(tmp_path / model, model, torch.device("cpu")))


def test_other_networks_are_opened_with_pytorch(tmp_path: Path) -> None:
    store(tmp_path, "gru", engine="framework")
    opened = open_network(tmp_path / "gru", "gru", "cpu", torch.get_num_threads())
    assert isinstance(opened.weights[0], torch.Tensor)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    settings = network_settings("gru", num_hiddens=9)
    weights = build_network(settings.model_copy(update={"num_hiddens": 8}), 9, 0).weights()
    save_network(tmp_path, "x", settings, 9, weights, "compiled")
    with pytest.raises(DataError, match="not the weights of this model: train again"):
        open_network(tmp_path, "x", "cpu", 1)
