"""The optimiser of a run, and its learning rate in the course of a training."""

import math

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from seqlm.train.settings import RunConfig

_FINAL_LR_SHARE = 0.01
_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


class Optimizer:
    """The optimiser that a run's settings choose: PyTorch's functions, with what they keep of each parameter.

    PyTorch's classes of optimisers do the same, but load its compiler first: that takes as long as PyTorch itself.
    """

    def __init__(self, config: RunConfig, parameters: list[torch.nn.Parameter]) -> None:
        """Take the parameters that are changed; each must have a gradient at every step."""
        self._parameters = parameters
        self._weight_decay = config.weight_decay
        self._slots: dict[str, list[Tensor]] = {}
        if config.optimizer == "adamw":
            self._slots = {
                "step": [torch.zeros(()) for _ in parameters],
                "exp_avg": [torch.zeros_like(parameter) for parameter in parameters],
                "exp_avg_sq": [torch.zeros_like(parameter) for parameter in parameters],
            }

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters by their gradients."""
        parameters: list[Tensor] = [*self._parameters]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if not self._slots:
            sgd(
                parameters, gradients, [None] * len(parameters), lr=lr, weight_decay=0, momentum=0, dampening=0,
                nesterov=False, maximize=False,
            )  # fmt: skip
            return
        adamw(
            parameters, gradients, self._slots["exp_avg"], self._slots["exp_avg_sq"], [], self._slots["step"],
            lr=lr, weight_decay=self._weight_decay, beta1=_BETA1, beta2=_BETA2, eps=_EPS, amsgrad=False, maximize=False,
        )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """Return what is kept, by the number of its parameter and its own name."""
        return {f"{index}.{name}": tensor for name, of in self._slots.items() for index, tensor in enumerate(of)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


def scheduled_lr(config: RunConfig, done: float) -> float:
    """Return the learning rate where a share ``done`` of a training is done."""
    if config.schedule == "constant":
        return config.lr
    if done < config.warmup_share:
        share = done / config.warmup_share
    else:
        fall = (done - config.warmup_share) / (1 - config.warmup_share)
        share = _FINAL_LR_SHARE + (1 - _FINAL_LR_SHARE) * (1 + math.cos(math.pi * fall)) / 2
    return config.lr * share
