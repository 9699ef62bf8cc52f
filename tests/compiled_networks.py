"""Compiled networks of any kind of cell, computed with some threads or vector registers, and compared."""

import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

from seqlm.rnn.compiled_rnn import CompiledRNN

AnyNetwork = TypeVar("AnyNetwork", bound=CompiledRNN)
_NARROW = {
    "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma", "ATEN_CPU_CAPABILITY": "avx2",
}  # fmt: skip


def exact(model: AnyNetwork) -> AnyNetwork:
    """Return a network in double precision, which is not compiled."""
    other = copy.deepcopy(model).double()
    assert not other.is_compiled
    return other


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compute(model: CompiledRNN, num_threads: int, *minibatch: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return surprisals, the state after and the gradient of a minibatch."""
    with threads(num_threads), model.team():
        nats, state = model.compute_gradients(*minibatch)
    return nats, state, model.flat.grad.clone()


def distance(value: Tensor, wanted: Tensor) -> float:
    """Return the norm of the difference over that of what is wanted."""
    return float((value.double() - wanted.double()).norm() / wanted.double().norm())


def printed_with_each_width(script: str, *arguments: str, **variables: str) -> list[str]:
    """Return what a script prints behind its first word, with this processor's vector registers and with narrow ones.

    Its first word is the width of a panel, by which it is seen that the narrow ones were used.
    """
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script, *arguments], env=os.environ | variables | registers, check=True,
            capture_output=True, text=True,
        ).stdout.split(maxsplit=1)
        for registers in ({}, _NARROW)
    ]  # fmt: skip
    assert outputs[1][0] == "16"
    return [printed for _, printed in outputs]
