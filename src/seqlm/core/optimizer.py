"""Optimizers."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor
from torch.optim.adamw import adamw

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


class Optimizer:
    """SGD or AdamW (Adam if there is no weight decay): PyTorch's own function and its state.

    PyTorch's own classes do the same, but first import its compiler, which takes as long as
    importing PyTorch.
    """

    def __init__(
        self,
        name: Literal["sgd", "adamw"],
        parameters: Iterable[torch.nn.Parameter],
        weight_decay: float = 0.0,
    ) -> None:
        """Take the parameters to change; only AdamW uses the weight decay."""
        self._parameters, self._weight_decay = list(parameters), weight_decay
        self._slots: dict[str, list[Tensor]] = {}
        if name == "adamw":
            self._slots = {
                "step": [torch.zeros(()) for _ in self._parameters],
                "exp_avg": [torch.zeros_like(parameter) for parameter in self._parameters],
                "exp_avg_sq": [torch.zeros_like(parameter) for parameter in self._parameters],
            }

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters by their gradients. Raises ValueError if one has none."""
        parameters: list[Tensor] = [*self._parameters]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if len(gradients) < len(parameters):
            raise ValueError("a parameter has no gradient")
        if not self._slots:
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.add_(gradient, alpha=-lr)
            return
        adamw(
            parameters,
            gradients,
            self._slots["exp_avg"],
            self._slots["exp_avg_sq"],
            [],
            self._slots["step"],
            lr=lr,
            weight_decay=self._weight_decay,
            beta1=_BETA1,
            beta2=_BETA2,
            eps=_EPS,
            amsgrad=False,
            maximize=False,
            # On a CPU the fused step passes over memory once instead of nine times; elsewhere
            # PyTorch chooses.
            fused=True if parameters[0].device.type == "cpu" else None,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the state by parameter number and name."""
        return {
            f"{index}.{name}": tensor
            for name, slot in self._slots.items()
            for index, tensor in enumerate(slot)
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a state that :meth:`state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
