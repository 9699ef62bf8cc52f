"""Compile the loops of networks during the first stages of `make repro`, which leave a processor idle.

Nothing depends on it: a stage that does not find the loops compiles them, which takes about 10 seconds.
"""

import numpy as np

from seqlm.networks.building import build_network
from seqlm.networks.network import stream_nll
from seqlm.networks.settings import NetworkSettings

if __name__ == "__main__":
    # All kinds and sizes of networks share the loops.
    settings = NetworkSettings(
        model="scratch", activation="tanh", num_hiddens=8, num_layers=1, num_heads=1, num_steps=3, embedding="one_hot",
        embedding_size=None, tie_weights=False, dropout=0.0, engine="auto",
    )  # fmt: skip
    network, ids = build_network(settings, vocab_size=4, seed=0), np.zeros((2, 3), np.int64)
    with network.thread_team():
        for optimizer in ("adamw", "sgd"):
            network.start_training(optimizer)
            network.compute_gradients(ids, ids, network.initial_state(len(ids)))
            network.clip_gradients(1e-9)
            network.step(0.1)
    stream_nll(network, ids[0])
