"""Networks of any kind, computed with some number of threads, and compared."""

from typing import Any

import numpy as np
from torch import Tensor

from seqlm.networks.building import build_network
from seqlm.networks.compiled.network import CompiledNetwork
from seqlm.networks.settings import NetworkSettings


def network_settings(model: str, **changes: object) -> NetworkSettings:
    """Return settings of one layer with one-hot input and without dropout, except for changes."""
    values = {
        "model": model, "activation": "tanh", "num_hiddens": 8, "num_layers": 1, "embedding": "one_hot",
        "embedding_size": None, "tie_weights": False, "dropout": 0.0, "engine": "auto", "num_heads": 1, "num_steps": 8,
    }  # fmt: skip
    return NetworkSettings.model_validate(values | changes)


def scratch_network(vocab_size: int, num_hiddens: int, factor: float = 1) -> CompiledNetwork:
    """Return an RNN from scratch whose initial weights are multiplied by ``factor``."""
    network = build_network(network_settings("scratch", num_hiddens=num_hiddens), vocab_size, 0)
    assert isinstance(network, CompiledNetwork)
    network.flat *= np.float32(factor)
    return network


def strong_network(vocab_size: int = 6) -> CompiledNetwork:
    """Return a network of 8 hidden units with weights so large that every token matters."""
    return scratch_network(vocab_size, 8, factor=50)


def compute(model: CompiledNetwork, num_threads: int, *minibatch: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    model.num_threads = num_threads
    with model.thread_team():
        nll, state = model.compute_gradients(*minibatch)
    return nll, state, model.gradient.copy()


def distance(value: np.ndarray, wanted: Tensor) -> float:
    """Return the norm of the difference divided by that of the expected value."""
    return float(np.linalg.norm(value - wanted.numpy()) / np.linalg.norm(wanted.numpy()))
