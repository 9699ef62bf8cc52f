"""What changes parameters by their gradients."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


class Optimizer:
    """SGD or AdamW, which without a decay of the weights is Adam: PyTorch's functions, and what they keep.

    PyTorch's classes of optimisers do the same, but load its compiler first: that takes as long as PyTorch itself.
    """

    def __init__(
        self, name: Literal["sgd", "adamw"], parameters: Iterable[torch.nn.Parameter], weight_decay: float = 0.0
    ) -> None:
        """Take the parameters that are changed; a decay of the weights is AdamW's alone."""
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
        """Change the parameters by their gradients. Raises ValueError where one has none."""
        parameters: list[Tensor] = [*self._parameters]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if len(gradients) < len(parameters):
            raise ValueError("a parameter has no gradient")
        if not self._slots:
            sgd(
                parameters, gradients, [None] * len(parameters), lr=lr, weight_decay=0, momentum=0, dampening=0,
                nesterov=False, maximize=False,
            )  # fmt: skip
            return
        adamw(
            parameters, gradients, self._slots["exp_avg"], self._slots["exp_avg_sq"], [], self._slots["step"],
            lr=lr, weight_decay=self._weight_decay, beta1=_BETA1, beta2=_BETA2, eps=_EPS, amsgrad=False, maximize=False,
            # On a CPU that goes through memory once, not nine times; elsewhere PyTorch chooses.
            fused=True if parameters[0].device.type == "cpu" else None,
        )  # fmt: skip
        # The fused step does not count as a change of the parameters, and compiled loops pack them anew by that count.
        for parameter in parameters:
            increment_version(parameter)

    def state(self) -> dict[str, Tensor]:
        """Return what is kept, by the number of its parameter and its own name."""
        return {f"{index}.{name}": tensor for name, of in self._slots.items() for index, tensor in enumerate(of)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
