"""Trains one model on a stream of tokens.

The trainer knows minibatches, the optimiser and when to stop; how a model computes its
gradients is the model's own affair (``compute_gradients``). It can stop after any
minibatch and go on from its :meth:`~Trainer.state` as if it had not stopped.
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
from seqlm.core.optimizer import Optimizer
from seqlm.rnn.building import build_network
from seqlm.rnn.network import Network, RandomNoise, State
from seqlm.train.legs import HistoryRow, RunningTotals
from seqlm.train.minibatches import Minibatch, random_minibatches, sequential_minibatches
from seqlm.train.plan import Plan
from seqlm.train.ranks import Ranks
from seqlm.train.schedule import scheduled_lr
from seqlm.train.settings import RunConfig
from seqlm.train.states import flatten_state, unflatten_state
from seqlm.train.validation import val_nll

_ALONE = Ranks()
MINIBATCHES_BETWEEN_CHECKS = 64
"""Looking at the loss waits for the device, and so do processes for each other: not after every minibatch."""


@dataclass
class Progress:
    """How far a training is: everything a checkpoint holds beside tensors."""

    history: list[HistoryRow] = field(default_factory=list)
    num_epochs: int = 0
    """Epochs done."""
    index: int = 0
    """Minibatches done of the present epoch."""
    minibatches: int = 0
    """Minibatches done of all."""
    best_epoch: float | None = None
    best_val_perplexity: float = math.inf
    looks_since_best: int = 0


Callback = Callable[["Trainer"], None]


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

        Raises DataError where the text is too short for any minibatch, and ParamsError
        where its lanes cannot be shared out among the processes.
        """
        self.config, self.device, self.ranks = config, device, ranks
        ranks.share(config.batch_size)
        # Files that are mapped into memory come as arrays of a kind of their own, which PyTorch does not take.
        self._train_ids, self._val_ids = np.asarray(train_ids)[: config.max_tokens], np.asarray(val_ids)
        self.network: Network = build_network(config, vocab_size, config.seed, device)
        self._parameters = list(self.network.parameters())
        self.plan = Plan.of(config, len(self._train_ids), self.num_parameters, ranks.size)
        self._share = ranks.share(self.plan.batch_size)
        self._optimizer = Optimizer(config.optimizer, self._parameters, config.weight_decay)
        self._rng = np.random.default_rng(config.seed)
        self._rng_of_epoch = self._rng.bit_generator.state
        self._generator = torch.Generator(device).manual_seed(config.seed)
        keep_probability = config.keep_probability if config.truncation == "randomized" else None
        self._draws = RandomNoise(self._generator, self.plan.batch_size, self._share, keep_probability)
        self.progress = Progress()
        self._sums = self._no_sums()
        self._carried: State | None = None
        self._best_weights: dict[str, Tensor] | None = None

    def run(self, watch: Callback) -> None:
        """Train to the end, calling ``watch`` after each minibatch and after each epoch.

        Raises DivergenceError when it finds a loss that is not finite.
        """
        with self.network.team():
            while not self.is_done:
                for inputs, targets in self._rest_of_epoch():
                    self._learn(inputs, targets)
                    if self.plan.ends_leg(len(self.progress.history) + 1, self.progress.minibatches):
                        self._end_leg()
                    watch(self)
                    if self.is_done:
                        return
                self._end_epoch()
                watch(self)

    @property
    def is_done(self) -> bool:
        """Whether all legs are done, or val has not improved for too long."""
        patience = self.config.patience
        stopped = patience is not None and self.progress.looks_since_best >= patience
        return stopped or len(self.progress.history) >= self.plan.num_legs

    @property
    def num_parameters(self) -> int:
        """How many numbers the training changes."""
        return sum(parameter.numel() for parameter in self._parameters)

    @property
    def tokens_trained(self) -> int:
        """Tokens of all minibatches that are done."""
        return self.progress.minibatches * self.plan.tokens_per_batch

    @property
    def epochs_trained(self) -> float:
        """Epochs that are done, with the share that is done of the present one."""
        progress = self.progress
        if progress.index == 0:
            return progress.num_epochs
        return progress.num_epochs + min(progress.index / self.plan.batches_per_epoch, 1.0)

    def leg_so_far(self) -> HistoryRow | None:
        """Return what the leg that is going on has come to, in this process; None at its beginning."""
        sums = self._sums
        return self._leg(float(sums.nats), sums.tokens, None) if sums.norms else None

    def chosen_weights(self) -> tuple[float, dict[str, Tensor]]:
        """Return the epoch and the weights that the setting ``keep`` chooses."""
        if self.config.keep == "best" and self._best_weights is not None and self.progress.best_epoch is not None:
            return self.progress.best_epoch, self._best_weights
        return self.epochs_trained, self.network.weights()

    def _rest_of_epoch(self) -> Iterator[Minibatch]:
        """Yield this process's lanes of every minibatch that is not done in the present epoch."""
        cut = random_minibatches if self.config.sampling == "random" else sequential_minibatches
        plan, done = self.plan, self.progress.index
        self._rng.bit_generator.state = self._rng_of_epoch
        for inputs, targets in cut(self._train_ids, plan.batch_size, plan.num_steps, self._rng, done=done):
            yield inputs[self._share], targets[self._share]

    def _learn(self, inputs: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        config, progress, sums = self.config, self.progress, self._sums
        sums.lr = self._lr()
        if self._carried is None or not config.carries_state:
            self._carried = self.network.initial_state(len(inputs))
        nats, self._carried = self.network.compute_gradients(
            torch.from_numpy(inputs).to(self.device),
            torch.from_numpy(targets).to(self.device),
            self._carried,
            self._draws,
        )
        self.ranks.average(parameter.grad for parameter in self._parameters)
        sums.norms.append(torch.nn.utils.clip_grad_norm_(self._parameters, config.grad_clip or math.inf))
        self._optimizer.step(sums.lr)
        sums.nats += nats.sum().float()
        sums.tokens += targets.size
        if progress.index % MINIBATCHES_BETWEEN_CHECKS == 0:
            self._require_finite(self.ranks.all_reduce_sum(sums.nats), sums.tokens * self.ranks.size)
        progress.index += 1
        progress.minibatches += 1

    def _end_epoch(self) -> None:
        self.progress.num_epochs += 1
        self.progress.index = 0
        self._rng_of_epoch = self._rng.bit_generator.state
        self._carried = None
        if not self.plan.is_bounded:
            self._end_leg()

    def _end_leg(self) -> None:
        nats, num_tokens = self.ranks.all_reduce_sum(self._sums.nats), self._sums.tokens * self.ranks.size
        self._require_finite(nats, num_tokens)
        self.progress.history.append(self._leg(float(nats), num_tokens, self._look_at_val()))
        self._sums = self._no_sums()

    def _no_sums(self) -> RunningTotals:
        return RunningTotals(torch.zeros((), device=self.device))

    def _leg(self, nats: float, num_tokens: int, val: float | None) -> HistoryRow:
        clip = self.config.grad_clip or math.inf
        epoch, tokens_trained = self.epochs_trained, self.tokens_trained
        return self._sums.as_leg(nats, num_tokens, epoch=epoch, tokens_trained=tokens_trained, clip=clip, val=val)

    def _lr(self) -> float:
        progress = self.progress
        return scheduled_lr(
            self.config, self.plan.share_done(progress.num_epochs, progress.index, progress.minibatches)
        )

    def _require_finite(self, nats: Tensor, num_tokens: int) -> None:
        # A loss that is finite in sum may still be too large for a perplexity.
        if not math.isfinite(perplexity(float(nats), max(num_tokens, 1))):
            advice = "set grad_clip to 1" if self.config.grad_clip is None else "lower lr or grad_clip"
            epoch = max(math.ceil(self.epochs_trained), 1)
            raise DivergenceError(
                f"run {self.config.run}: the loss is not finite in epoch {epoch}: {advice}, or choose another seed"
            )

    def _look_at_val(self) -> float | None:
        progress, leg = self.progress, len(self.progress.history) + 1
        if leg % self.config.eval_every and leg != self.plan.num_legs:
            return None
        nats = val_nll(self.network, self._val_ids, self.plan.val_token_budget(self.config))
        value = perplexity(float(nats.sum()), len(nats))
        if value < progress.best_val_perplexity:
            progress.best_epoch, progress.best_val_perplexity = self.epochs_trained, value
            progress.looks_since_best = 0
            if self.config.keep == "best":
                self._best_weights = self.network.weights()
        else:
            progress.looks_since_best += 1
        return value

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything that a training needs to go on as if it had not stopped.

        Where several processes train, all must ask for it: each adds its own sums and lanes.
        """
        tensors = {f"model.{name}": weight for name, weight in self.network.weights().items()}
        tensors |= {f"best.{name}": weight for name, weight in (self._best_weights or {}).items()}
        tensors |= {f"optimizer.{name}": tensor for name, tensor in self._optimizer.state().items()}
        if self._sums.norms:
            tensors["norms"] = torch.stack(self._sums.norms)
        carried = flatten_state(self._carried) if self._carried is not None and self.config.carries_state else []
        if carried or self._sums.norms:
            for rank, own in enumerate(self.ranks.all_gather([self._sums.nats, *carried])):
                tensors |= {f"process.{rank}.{number}": tensor for number, tensor in enumerate(own)}
        tensors["generator"] = self._generator.get_state()
        sums = {"tokens": self._sums.tokens, "lr": self._sums.lr}
        return tensors, {"progress": asdict(self.progress), "rng": self._rng_of_epoch, "sums": sums}

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go on from a state that :meth:`state` returned."""
        self.network.load_weights(_under("model.", tensors))
        self._best_weights = _under("best.", tensors) or None
        self._optimizer.restore(_under("optimizer.", tensors))
        self._generator.set_state(tensors["generator"])
        self._rng_of_epoch = values["rng"]
        self._sums, self._carried = self._no_sums(), None
        if own := _under(f"process.{self.ranks.rank}.", tensors):
            nats, *carried = (own[str(number)] for number in range(len(own)))
            norms = [norm.to(self.device) for norm in tensors.get("norms", ())]
            self._sums = RunningTotals(nats.to(self.device), norms=norms, **values["sums"])
            zeros = self.network.initial_state(self._share.stop - self._share.start)
            self._carried = unflatten_state(zeros, iter(carried)) if carried else None
        progress = dict(values["progress"])
        self.progress = Progress(**progress | {"history": [HistoryRow(**row) for row in progress["history"]]})


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``prefix``, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
