"""Dynamic evaluation: a model that keeps learning from the text it has just predicted (Krause et al. 2018)."""

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from seqlm.rnn.building import Model


def dynamic_nats(model: Model, ids: NDArray[np.integer], *, lr: float, every: int, clip: float) -> NDArray[np.float64]:
    """Return -log p of tokens 2..N of a stream, shape ``(N - 1,)``, adapting after every ``every`` tokens.

    Each segment is scored first and then learned from by one clipped SGD step, so every
    token is predicted before the model has seen it. ``model`` itself stays as it is.
    """
    adapted = copy.deepcopy(model)
    parameters = list(adapted.parameters())
    stream = torch.from_numpy(np.asarray(ids, np.int64)).to(parameters[0].device)
    state: Any = adapted.initial_state(1)
    pieces = []
    for start in range(0, len(stream) - 1, every):
        end = min(start + every, len(stream) - 1)
        inputs, targets = stream[None, start:end], stream[None, start + 1 : end + 1]
        with torch.no_grad():
            logits, _ = adapted(inputs, state)
        pieces.append(F.cross_entropy(logits[0].double(), targets[0], reduction="none").cpu().numpy())
        _, state = adapted.compute_gradients(inputs, targets, state)
        torch.nn.utils.clip_grad_norm_(parameters, clip)
        with torch.no_grad():
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-lr)
    return np.concatenate(pieces) if pieces else np.empty(0)
