"""From a tensor of logits to -log p and to the gradient of the loss."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from seqlm.core.devices import in_double
from seqlm.rnn.compiled.compiling import has_fma
from seqlm.rnn.compiled.logsumexp import nll_of_logits

_DOUBLES_BYTES = 1 << 24
"""Most bytes of logits in double precision at once."""


def nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -log p of ``targets`` (...) under ``logits`` (..., V), on the CPU in double precision."""
    rows, wanted = logits.flatten(0, -2), targets.flatten()
    if logits.device.type == "cpu" and logits.dtype == torch.float32 and has_fma():
        found = torch.from_numpy(nll_of_logits(rows.numpy(), wanted.numpy(), torch.get_num_threads()))
    else:
        parts = zip(_in_double(rows), torch.split(wanted, _rows_in_double(rows)), strict=True)
        losses = [F.cross_entropy(part, its.to(part.device), reduction="none").cpu() for part, its in parts]
        found = torch.cat(losses)
    return found.view(targets.shape)


def nll_and_gradient(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return -log p of ``targets`` (...) and the gradient of its mean by ``logits`` (..., V).

    The gradient is (softmax - one-hot) / number of targets (8.7.11).
    """
    log_probs, wanted = torch.log_softmax(logits, -1), targets[..., None]
    losses = -log_probs.gather(-1, wanted)[..., 0]
    d_logits = log_probs.exp_()
    d_logits.scatter_add_(-1, wanted, torch.full_like(wanted, -1, dtype=d_logits.dtype))
    return losses, d_logits.mul_(1 / targets.numel())


def _in_double(logits: Tensor) -> Iterator[Tensor]:
    """Yield ``logits`` (N, V) in double precision, in parts of bounded size."""
    return map(in_double, torch.split(logits, _rows_in_double(logits)))


def _rows_in_double(logits: Tensor) -> int:
    return max(_DOUBLES_BYTES // (8 * logits.shape[1]), 1)
