"""The optimisers: those of PyTorch to the last bit, without its compiler."""

from typing import Literal

import pytest
import torch

from seqlm.core.optimizer import Optimizer
from stages_by_hand import run_python, succeeded

TRAINS = """
import sys
from default_params import PARAMS_FILE
from seqlm.core.settings import load
from seqlm.pipeline.gradients.settings import GradientsParams
from seqlm.pipeline.gradients.study import study_gradients
from small_training import TEXT, config, trained

few = {"num_minibatches": 1, "num_trainings": 1, "num_draws": 2, "num_hiddens": 2}
study_gradients(load(PARAMS_FILE, "gradients", GradientsParams).model_copy(update=few), TEXT, TEXT[:60], 6, 0, 1)
for name in ("sgd", "adamw"):
    trained(config(optimizer=name, engine="framework"))
print("torch._dynamo" in sys.modules)
"""


def weights() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((37, 19), (23,))]


def gradients(step: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1 + step)
    return [torch.randn(weight.shape, generator=generator) for weight in weights()]


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_steps_are_those_of_pytorchs_own_classes_to_the_last_bit(name: Literal["sgd", "adamw"]) -> None:
    own, theirs = weights(), weights()
    optimizer = Optimizer(name, own, weight_decay=0.1)
    reference: torch.optim.Optimizer = torch.optim.SGD(theirs, lr=1.0)
    if name == "adamw":
        reference = torch.optim.AdamW(theirs, lr=1.0, weight_decay=0.1, fused=True)
    for step in range(20):
        for weight, its, gradient in zip(own, theirs, gradients(step), strict=True):
            weight.grad, its.grad = gradient, gradient.clone()
        if step == 10:
            # One that begins with what another kept continues as that one would.
            state, optimizer = optimizer.state(), Optimizer(name, own, weight_decay=0.1)
            optimizer.restore(state)
        reference.param_groups[0]["lr"] = 0.1 / (1 + step)
        optimizer.step(0.1 / (1 + step))
        reference.step()
    assert all(torch.equal(weight, its) for weight, its in zip(own, theirs, strict=True))
    assert not torch.equal(own[0], weights()[0])


def test_a_parameter_without_a_gradient_is_refused() -> None:
    changed = weights()
    changed[1].grad = torch.ones_like(changed[1])
    with pytest.raises(ValueError, match="a parameter has no gradient"):
        Optimizer("sgd", changed).step(0.1)


@pytest.mark.slow
def test_training_does_not_load_pytorchs_compiler() -> None:
    assert succeeded(run_python(TRAINS)) == "False\n"
