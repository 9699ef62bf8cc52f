"""A device that has no double precision, as Apple's mps has none, imitated on the CPU.

Its tensors say that they lie on it and hold one of the CPU inside. Run as a program, it trains, scores and
writes with a network there and with the same one on the CPU, and prints how far the two differ.
"""

from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from default_params import PARAMS_FILE
from seqlm.core.settings import read_params
from seqlm.networks.network import continue_prefixes, stream_nll
from seqlm.networks.scratch import ScratchRNN
from seqlm.score.diagnostics import diagnose
from seqlm.score.networks import DynamicRule, dynamic_nll, gradient_rms, network_predictor, trained_weights
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer

_setup_privateuseone_for_python_backend("imitated")
DEVICE, CPU = torch.device("imitated:0"), torch.device("cpu")


class Imitated(torch.Tensor):
    """A tensor on the imitated device."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Imitated":
        if inner.dtype == torch.float64:
            raise TypeError("the imitated device has no float64")
        found = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=DEVICE
        )
        found.inner = inner
        return found

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(function, args, kwargs or {})

    def __float__(self) -> float:
        return float(self.inner)

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self) -> np.ndarray:
        raise TypeError("a tensor on the imitated device is no array")


class Imitation(TorchDispatchMode):
    """Makes tensors on the imitated device where they are asked for."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(function, args, kwargs or {})


def compute(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute on the CPU what is asked of the imitated device."""
    given = {id(leaf.inner): leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Imitated)}
    is_here = bool(given)
    args, kwargs = tree_map_only(Imitated, lambda tensor: tensor.inner, (args, kwargs))
    if kwargs.get("device") is not None:
        is_here = torch.device(kwargs["device"]).type == DEVICE.type
        kwargs |= {"device": CPU}
    result = function(*args, **kwargs)
    if not is_here:
        return result

    def put_there(inner: torch.Tensor) -> Imitated:
        # What was changed in place stays the same tensor.
        return given[id(inner)] if id(inner) in given else Imitated(inner)

    return tree_map_only(torch.Tensor, put_there, result)


def run_config() -> RunConfig:
    params = read_params(PARAMS_FILE)
    own = {"num_hiddens": 8, "num_epochs": 2, "eval_every": 1, "batch_size": 2, "num_steps": 5, "max_tokens": None}
    return RunConfig(**params["train"] | own, token="char", run="a", device="cpu", seed=0, num_threads=1)


def results(device: torch.device) -> dict[str, np.ndarray]:
    """Return what everything that works with a network makes of it."""
    ids = np.random.default_rng(0).integers(1, 6, 200)
    model = ScratchRNN(6, 8, "tanh", torch.Generator().manual_seed(0))
    for weight in model.named_weights().values():
        weight.mul_(50)
    model = model.to(device).eval()
    roots = gradient_rms(model, ids, segment_length=10, num_segments=5)
    rule = DynamicRule(0.01, 0.1, roots, trained_weights(model))
    trainer = Trainer(run_config(), 6, ids, ids, device)
    trainer.train(lambda _: None)
    last = trainer.progress.history[-1]
    found = diagnose(network_predictor(model), ids)
    return {
        "scores": stream_nll(model, ids),
        "dynamic": dynamic_nll(model, ids, update_every=10, update=rule.apply),
        "positions": np.array(found["positions"]),
        "calibration": np.array(found["calibration"]),
        "greedy": continue_prefixes(model, np.array([[1, 2], [3, 4]]), 9),
        "training": np.array([last.train_perplexity, last.val_perplexity, last.grad_norm]),
    }


def main() -> None:
    wanted = results(CPU)
    # A generator on the device itself would take a device that is really there.
    with Imitation(), mock.patch("torch.Generator", return_value=torch.Generator()):
        for name, found in results(DEVICE).items():
            print(name, np.abs(found - wanted[name]).max())


if __name__ == "__main__":
    main()
