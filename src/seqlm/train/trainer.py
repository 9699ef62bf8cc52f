"""Trains one model on a stream of tokens.

The trainer knows minibatches, the optimiser and when to stop; how a model computes its
gradients is the model's own affair (``compute_gradients``).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqlm.core.errors import DivergenceError
from seqlm.core.metrics import perplexity
from seqlm.rnn.building import build_network
from seqlm.rnn.network import Network, RandomDraws
from seqlm.rnn.scoring import stream_nats
from seqlm.train.minibatches import Minibatch, random_minibatches, require_length, sequential_minibatches
from seqlm.train.ranks import Ranks
from seqlm.train.settings import RunConfig

_ALONE = Ranks()
_FINAL_LR_SHARE = 0.01
_MINIBATCHES_BETWEEN_CHECKS = 64
"""Looking at the loss waits for the device: not after every minibatch."""


@dataclass(frozen=True)
class Epoch:
    """One row of the history."""

    epoch: int
    train_perplexity: float
    val_perplexity: float | None
    """None in epochs without a look at val."""
    grad_norm: float
    """Mean norm of the gradient before clipping."""
    grad_norm_max: float
    clipped_share: float
    lr: float


@dataclass
class Progress:
    """How far a training is: everything a checkpoint holds beside tensors."""

    history: list[Epoch] = field(default_factory=list)
    best_epoch: int | None = None
    best_val_perplexity: float = math.inf
    looks_since_best: int = 0

    @property
    def num_epochs(self) -> int:
        """Epochs done."""
        return len(self.history)


OnEpoch = Callable[["Trainer"], None]


class Trainer:
    """One training: a model, its optimiser, its generators and its progress."""

    def __init__(
        self,
        config: RunConfig,
        vocab_size: int,
        train_ids: NDArray[np.integer],
        val_ids: NDArray[np.integer],
        device: torch.device,
        ranks: Ranks = _ALONE,
    ) -> None:
        """Prepare a training of ``config`` on streams of token ids, alone or as one of ``ranks``.

        Raises DataError where the text is too short for one minibatch, and ParamsError
        where its lanes cannot be shared out among the processes.
        """
        self.config = config
        self._ranks, self._share = ranks, ranks.share(config.batch_size)
        self._train_ids = train_ids[: config.max_tokens]
        self._val_ids = val_ids
        self._num_steps = config.num_steps
        if config.truncation == "full":
            # Without truncation, one window spans each lane, less what the random offset may drop.
            self._num_steps = max(len(self._train_ids) // (config.batch_size + 1), 1)
        require_length(len(self._train_ids), config.batch_size, self._num_steps)
        self.device = device
        self.network: Network = build_network(config, vocab_size, config.seed).to(device)
        self._parameters = list(self.network.parameters())
        self._optimizer = _build_optimizer(config, self._parameters)
        self._rng = np.random.default_rng(config.seed)
        self._generator = torch.Generator(device).manual_seed(config.seed)
        keep_probability = config.keep_probability if config.truncation == "randomized" else None
        self._draws = RandomDraws(self._generator, config.batch_size, self._share, keep_probability)
        self.progress = Progress()
        self._best_weights: dict[str, Tensor] | None = None

    def run(self, on_epoch: OnEpoch) -> None:
        """Train to the end, calling ``on_epoch`` after each epoch.

        Raises DivergenceError at the first loss that is not finite.
        """
        with self.network.team():
            while not self.is_done:
                self._train_epoch()
                on_epoch(self)

    @property
    def is_done(self) -> bool:
        """Whether all epochs are done, or val has not improved for too long."""
        patience = self.config.patience
        stopped = patience is not None and self.progress.looks_since_best >= patience
        return stopped or self.progress.num_epochs >= self.config.num_epochs

    @property
    def num_parameters(self) -> int:
        """How many numbers the training changes."""
        return sum(parameter.numel() for parameter in self._parameters)

    def chosen_weights(self) -> tuple[int, dict[str, Tensor]]:
        """Return the epoch and the weights that the setting ``keep`` chooses."""
        if self.config.keep == "best" and self._best_weights is not None and self.progress.best_epoch is not None:
            return self.progress.best_epoch, self._best_weights
        return self.progress.num_epochs, self.network.weights()

    def _train_epoch(self) -> None:
        epoch, config = self.progress.num_epochs + 1, self.config
        state: Any = None
        total, num_tokens, norms = torch.zeros((), device=self.device), 0, []
        for index, (inputs, targets) in enumerate(self._minibatches()):
            lr = self._set_lr(epoch, index)
            if state is None or not config.carries_state:
                state = self.network.initial_state(len(inputs))
            loss, state = self.network.compute_gradients(
                torch.from_numpy(inputs).to(self.device), torch.from_numpy(targets).to(self.device), state, self._draws
            )
            self._ranks.average(parameter.grad for parameter in self._parameters)
            norms.append(torch.nn.utils.clip_grad_norm_(self._parameters, config.grad_clip or math.inf))
            self._optimizer.step()
            total += loss
            num_tokens += targets.size
            if index % _MINIBATCHES_BETWEEN_CHECKS == 0:
                self._require_finite(self._ranks.total(total), num_tokens * self._ranks.size, epoch)
        total, num_tokens = self._ranks.total(total), num_tokens * self._ranks.size
        self._require_finite(total, num_tokens, epoch)
        all_norms = torch.stack(norms)
        self.progress.history.append(
            Epoch(
                epoch=epoch,
                train_perplexity=perplexity(float(total), num_tokens),
                val_perplexity=self._look_at_val(epoch),
                grad_norm=float(all_norms.mean()),
                grad_norm_max=float(all_norms.max()),
                clipped_share=float((all_norms > (config.grad_clip or math.inf)).float().mean()),
                lr=lr,
            )
        )

    def _minibatches(self) -> Iterator[Minibatch]:
        """Yield this process's lanes of every minibatch."""
        cut = random_minibatches if self.config.sampling == "random" else sequential_minibatches
        for inputs, targets in cut(self._train_ids, self.config.batch_size, self._num_steps, self._rng):
            yield inputs[self._share], targets[self._share]

    def _set_lr(self, epoch: int, index: int) -> float:
        config = self.config
        if config.schedule == "constant":
            return config.lr
        num_minibatches = max((len(self._train_ids) - 1) // (config.batch_size * self._num_steps), 1)
        done = min((epoch - 1 + index / num_minibatches) / config.num_epochs, 1.0)
        if done < config.warmup_share:
            share = done / config.warmup_share
        else:
            fall = (done - config.warmup_share) / (1 - config.warmup_share)
            share = _FINAL_LR_SHARE + (1 - _FINAL_LR_SHARE) * (1 + math.cos(math.pi * fall)) / 2
        for group in self._optimizer.param_groups:
            group["lr"] = config.lr * share
        return config.lr * share

    def _require_finite(self, total: Tensor, num_tokens: int, epoch: int) -> None:
        # A loss that is finite in sum may still be too large for a perplexity.
        if not math.isfinite(perplexity(float(total), max(num_tokens, 1))):
            advice = "set grad_clip to 1" if self.config.grad_clip is None else "lower lr or grad_clip"
            raise DivergenceError(
                f"run {self.config.run}: the loss is not finite in epoch {epoch}: {advice}, or choose another seed"
            )

    def _look_at_val(self, epoch: int) -> float | None:
        if epoch % self.config.eval_every and epoch != self.config.num_epochs:
            return None
        nats = stream_nats(self.network, self._val_ids)
        value = perplexity(float(nats.sum()), len(nats))
        progress = self.progress
        if value < progress.best_val_perplexity:
            progress.best_epoch, progress.best_val_perplexity, progress.looks_since_best = epoch, value, 0
            if self.config.keep == "best":
                self._best_weights = self.network.weights()
        else:
            progress.looks_since_best += 1
        return value

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything that a training needs to go on as if it had not stopped."""
        tensors = {f"model.{name}": weight for name, weight in self.network.weights().items()}
        tensors |= {f"best.{name}": weight for name, weight in (self._best_weights or {}).items()}
        for index, slots in self._optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in slots.items()}
        tensors["generator"] = self._generator.get_state()
        return tensors, {"progress": asdict(self.progress), "rng": self._rng.bit_generator.state}

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go on from a state that :meth:`state` returned."""
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}}
        slots: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            group, _, rest = name.partition(".")
            if group == "optimizer":
                index, _, slot = rest.partition(".")
                slots.setdefault(int(index), {})[slot] = tensor
            elif group != "generator":
                groups[group][rest] = tensor
        self.network.load_weights(groups["model"])
        self._best_weights = groups["best"] or None
        self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": slots})
        self._generator.set_state(tensors["generator"])
        self._rng.bit_generator.state = values["rng"]
        progress = dict(values["progress"])
        self.progress = Progress(**progress | {"history": [Epoch(**row) for row in progress["history"]]})


def _build_optimizer(config: RunConfig, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=config.lr)
    return torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay)
