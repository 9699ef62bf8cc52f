"""Continuing prefixes with a network, each time with the most likely token, as in section 8.5."""

import numpy as np

from seqlm.rnn.array_network import ArrayNetwork, HasArrays, Ids


def continue_prefixes(model: HasArrays, prefixes: list[list[int]], num_preds: int) -> list[list[int]]:
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
        ids = np.array([prefixes[index] for index in members])  # (B, prefix)
        for index, tokens in zip(members, _continue(model.arrays, ids, num_preds).tolist(), strict=True):
            continuations[index] = tokens
    return continuations


def _continue(model: ArrayNetwork, ids: Ids, num_preds: int) -> Ids:
    """Return ``(B, num_preds)`` tokens that follow prefixes of one length, ``ids`` (B, prefix)."""
    logits, state = model.logits(ids, model.initial_state(len(ids)))
    first = logits[:, -1, 1:].argmax(1) + 1
    return np.concatenate([first[:, None], model.continue_greedily(first, state, num_preds - 1)], 1)
