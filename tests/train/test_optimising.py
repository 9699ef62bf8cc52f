"""The optimisers: those of PyTorch to the last bit, without its compiler."""

import os
import subprocess
import sys

import pytest
import torch

from seqlm.train.optimising import Optimizer
from small_runs import config

TRAINS = """
import sys
import numpy as np
import torch
from small_runs import config
from seqlm.train.trainer import Trainer

ids = np.tile([1, 2, 3, 4, 5], 40)
for name in ("sgd", "adamw"):
    Trainer(config(optimizer=name), 6, ids, ids[:20], torch.device("cpu")).run(lambda _: None)
print("torch._dynamo" in sys.modules)
"""


def weights() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((37, 19), (23,))]


def gradients(step: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1 + step)
    return [torch.randn(weight.shape, generator=generator) for weight in weights()]


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_steps_are_those_of_pytorchs_own_classes_to_the_last_bit(name: str) -> None:
    own, theirs = weights(), weights()
    run = config(optimizer=name, weight_decay=0.1)
    optimizer = Optimizer(run, own)
    reference: torch.optim.Optimizer = torch.optim.SGD(theirs, lr=1.0)
    if name == "adamw":
        reference = torch.optim.AdamW(theirs, lr=1.0, weight_decay=0.1)
    for step in range(20):
        for weight, its, gradient in zip(own, theirs, gradients(step), strict=True):
            weight.grad, its.grad = gradient, gradient.clone()
        if step == 10:
            # One that begins with what another kept goes on as that one would.
            state, optimizer = optimizer.state(), Optimizer(run, own)
            optimizer.restore(state)
        reference.param_groups[0]["lr"] = 0.1 / (1 + step)
        optimizer.step(0.1 / (1 + step))
        reference.step()
    assert all(torch.equal(weight, its) for weight, its in zip(own, theirs, strict=True))
    assert not torch.equal(own[0], weights()[0])


def test_training_does_not_load_pytorchs_compiler() -> None:
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", TRAINS], env=variables, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
