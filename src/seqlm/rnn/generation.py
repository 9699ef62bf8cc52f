"""Continuing prefixes with a network, each time with the most likely token, as in section 8.5."""

import torch
from torch import Tensor

from seqlm.rnn.network import Network


@torch.inference_mode()
def continue_prefixes(model: Network, prefixes: list[list[int]], num_preds: int) -> list[list[int]]:
    """Return the ``num_preds`` most likely tokens for each prefix; prefixes of one length share a batch.

    The state warms up on the prefix. ``<unk>``, token 0, is never chosen. Raises ValueError for an empty prefix.
    """
    if not all(prefixes):
        raise ValueError("an empty prefix gives the model nothing to continue")
    by_length: dict[int, list[int]] = {}
    for index, prefix in enumerate(prefixes):
        by_length.setdefault(len(prefix), []).append(index)
    continuations: list[list[int]] = [[] for _ in prefixes]
    for members in by_length.values():
        ids = torch.tensor([prefixes[index] for index in members]).to(model.device)  # (B, prefix)
        for index, tokens in zip(members, _continue(model, ids, num_preds).tolist(), strict=True):
            continuations[index] = tokens
    return continuations


def _continue(model: Network, ids: Tensor, num_preds: int) -> Tensor:
    """Return ``(B, num_preds)`` tokens that follow prefixes of one length, ``ids`` (B, prefix)."""
    logits, state = model(ids, model.initial_state(len(ids)))
    first = logits[:, -1, 1:].argmax(1) + 1
    return torch.cat([first[:, None], model.continue_greedily(first, state, num_preds - 1)], 1)
