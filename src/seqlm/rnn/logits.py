"""From logits to -log p, to probabilities, and to the gradient of the loss: what all networks share."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from seqlm.core.devices import in_double
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.logsumexp import nll_of_logits

_LOGITS_AT_ONCE = 1 << 22
"""Most logits in memory at once: with a large vocabulary those of a whole text would fill it."""
_DOUBLES_BYTES = 1 << 24
"""Most bytes of logits in double precision at once."""
_LARGE_VOCAB = 1024


def tokens_at_once(vocab_size: int) -> int:
    """Return for how many tokens, at least one, the logits may be in memory at once."""
    return max(_LOGITS_AT_ONCE // vocab_size, 1)


def is_large(vocab_size: int) -> bool:
    """Whether a vocabulary is so large that computing -log p from its logits takes most of the time."""
    return vocab_size > _LARGE_VOCAB


def nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -log p of ``targets`` (...) under ``logits`` (..., V), on the CPU in double precision."""
    rows, wanted = logits.flatten(0, -2), targets.flatten()
    # With a small vocabulary, PyTorch's own cross entropy is fast enough.
    is_compiled = logits.device.type == "cpu" and logits.dtype == torch.float32 and has_fma()
    if is_compiled and is_large(rows.shape[1]):
        found = torch.from_numpy(nll_of_logits(rows.numpy(), wanted.numpy(), torch.get_num_threads()))
    else:
        parts = zip(_in_double(rows), torch.split(wanted, _rows_in_double(rows)), strict=True)
        losses = [F.cross_entropy(part, its.to(part.device), reduction="none").cpu() for part, its in parts]
        found = torch.cat(losses)
    return found.view(targets.shape)


def nll_in_single_precision(logits: Tensor, targets: Tensor) -> Tensor:
    """Return what :func:`nll` does on the logits' own device and in their precision, which takes half the time."""
    return logits.logsumexp(-1) - logits.gather(-1, targets[..., None])[..., 0]


def nll_and_gradient(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return -log p of ``targets`` (...) and the gradient of its mean by ``logits`` (..., V).

    The gradient is (softmax - one-hot) / number of targets (8.7.11).
    """
    log_probs, wanted = torch.log_softmax(logits, -1), targets[..., None]
    losses = -log_probs.gather(-1, wanted)[..., 0]
    d_logits = log_probs.exp_()
    d_logits.scatter_add_(-1, wanted, torch.full_like(wanted, -1, dtype=d_logits.dtype))
    return losses, d_logits.mul_(1 / targets.numel())


def probabilities(logits: Tensor) -> Iterator[NDArray[np.float64]]:
    """Yield the probabilities of all tokens under ``logits`` (N, V), in parts ``(n, V)`` of bounded size."""
    for part in _in_double(logits):
        yield torch.log_softmax(part, -1).exp().cpu().numpy()


def _in_double(logits: Tensor) -> Iterator[Tensor]:
    """Yield ``logits`` (N, V) in double precision, in parts of bounded size."""
    return map(in_double, torch.split(logits, _rows_in_double(logits)))


def _rows_in_double(logits: Tensor) -> int:
    return max(_DOUBLES_BYTES // (8 * logits.shape[1]), 1)
