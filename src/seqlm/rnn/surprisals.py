"""Surprisals from logits, in double precision and bounded memory."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqlm.core.devices import in_double
from seqlm.core.metrics import Nats
from seqlm.rnn.compiled.processor import has_fma
from seqlm.rnn.compiled.tensors import row_nats

_LOGITS_AT_ONCE = 1 << 22
"""Most logits of a network at once: a large vocabulary must not take the memory."""
_DOUBLES_BYTES = 1 << 24
"""Most bytes of what is computed of them in double precision at once."""


def tokens_at_once(vocab_size: int) -> int:
    """Return for how many tokens, one or more, a network may hold its logits at once."""
    return max(_LOGITS_AT_ONCE // vocab_size, 1)


def parts_in_double(logits: Tensor) -> tuple[Tensor, ...]:
    """Return logits ``(N, V)`` in parts so small that doubles made of one take bounded memory; views."""
    return torch.split(logits, max(_DOUBLES_BYTES // (8 * logits.shape[1]), 1))


def surprisals(logits: Tensor, targets: Tensor) -> Nats:
    """Return -log p of ``targets`` (N,) under ``logits`` (N, V), computed in double precision."""
    nats, start = np.empty(len(targets)), 0
    for part in parts_in_double(logits):
        end, doubles = start + len(part), in_double(part)
        losses = F.cross_entropy(doubles, targets[start:end].to(doubles.device), reduction="none")
        nats[start:end], start = losses.cpu().numpy(), end
    return nats


def surprisals_of_outputs(outputs: Tensor, targets: Tensor, to_logits: Callable[[Tensor], Tensor]) -> Tensor:
    """Return -log p of targets ``(B, T)``, on the CPU in double precision, some tokens' logits at a time.

    ``outputs``: what the last layer gives, ``(B, T, h)``; ``to_logits`` makes ``(N, V)`` of ``(N, h)``.
    """
    rows, wanted = outputs.flatten(0, 1), targets.flatten()
    at_once, found = tokens_at_once(to_logits(rows[:1]).shape[1]), []
    for part, of_part in zip(torch.split(rows, at_once), torch.split(wanted, at_once), strict=True):
        logits = to_logits(part)
        if logits.device.type == "cpu" and logits.dtype == torch.float32 and has_fma():
            found.append(row_nats(logits, of_part, torch.get_num_threads()))
        else:
            found.append(torch.from_numpy(surprisals(logits, of_part)))
    return torch.cat(found).reshape(targets.shape)
