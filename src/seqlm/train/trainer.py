"""Trains one model on a stream of tokens.

The trainer knows minibatches, the optimizer and when to stop; the model computes its own gradients
(``compute_gradients``). Training can stop after any minibatch and resume from :meth:`Trainer.state`
as if it had not stopped.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DivergenceError
from seqlm.core.metrics import Nll, perplexity
from seqlm.core.text import window_starts
from seqlm.networks.building import build_network
from seqlm.networks.initial import mask, masks_rng
from seqlm.networks.network import Network, State, continue_prefixes, rows_nll, stream_nll
from seqlm.train.history import SAMPLE_TOKENS, HistoryRow, Progress, RunningTotals, is_sampled
from seqlm.train.minibatches import Minibatch, Plan, minibatches
from seqlm.train.ranks import ONE_PROCESS, Ranks
from seqlm.train.settings import RunConfig

MINIBATCHES_BETWEEN_CHECKS = 64
"""Reading the loss waits for the device, and processes wait for each other: do neither after every
minibatch."""
_NUM_PASSAGES = 64
_MAX_PARTS, _MIN_PART_TOKENS = 32, 512
"""A val that is read completely is read in this many parts at once, or fewer if they would be
shorter."""
_WARMUP = 64
"""Tokens at the beginning of a passage that only warm up the state."""
_FINAL_LR_SHARE = 0.01

Callback = Callable[["Trainer"], None]
Weights = dict[str, NDArray[np.float32]]
Checkpointed = tuple[dict[str, NDArray[Any]], dict[str, Any]]
"""Arrays by name, and values that JSON can hold."""


class Trainer:
    """One training: a model, its optimizer, its random generators and its progress."""

    def __init__(
        self,
        config: RunConfig,
        vocab_size: int,
        train_ids: NDArray[np.integer],
        val_ids: NDArray[np.integer],
        device: str = "cpu",
        ranks: Ranks = ONE_PROCESS,
        prefix: Sequence[int] = (),
    ) -> None:
        """Prepare to train ``config`` on streams of token ids, alone or as one of ``ranks``.

        Samples continue the tokens of ``prefix``; without any there are none. Raises DataError if
        the text is too short for any minibatch, and ParamsError if the rows of a minibatch cannot
        be divided among the processes.
        """
        self.config, self.ranks = config, ranks
        self.prefix = np.array([prefix], np.int64)
        self._train_ids = np.asarray(train_ids)[: config.max_tokens]
        self._val_ids = np.asarray(val_ids)
        self.network: Network = build_network(
            config, vocab_size, config.seed, device, config.num_threads
        )
        self.network.start_training(config.optimizer, config.weight_decay)
        self.plan = Plan.of(config, len(self._train_ids))
        self._shard = ranks.shard(self.plan.batch_size)
        self._rng = np.random.default_rng(config.seed)
        self._rng_at_epoch_start = self._rng.bit_generator.state
        self._masks_rng = masks_rng(config.seed)
        self._max_norm = config.grad_clip or math.inf
        self.progress = Progress(self.plan)
        self._totals = RunningTotals()
        self._carried: State | None = None
        self._best_weights: Weights | None = None

    def train(self, *callbacks: Callback) -> None:
        """Train to the end; call ``callbacks`` after each minibatch and after each epoch.

        Raises DivergenceError when it finds a loss that is not finite.
        """
        with self.network.thread_team():
            while not self.is_done:
                for inputs, targets in self._rest_of_epoch():
                    self._train_minibatch(inputs, targets)
                    if self.progress.is_at_row_end:
                        self._end_row()
                    self._call(callbacks)
                    if self.is_done:
                        return
                self._end_epoch()
                self._call(callbacks)

    def _call(self, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:
            callback(self)

    @property
    def is_done(self) -> bool:
        """Whether the history is complete, or val has not improved for too long."""
        patience = self.config.patience
        stopped = patience is not None and self.progress.evaluations_since_best >= patience
        return stopped or len(self.progress.history) >= self.plan.num_rows

    @property
    def can_be_saved(self) -> bool:
        """Whether training has not ended, and all processes are ready to save and to exchange."""
        every = 1 if self.ranks.size == 1 else MINIBATCHES_BETWEEN_CHECKS
        return not self.is_done and self.progress.minibatches % every == 0

    def chosen_weights(self) -> tuple[float, Weights]:
        """Return the epoch and the weights that the setting ``checkpoint`` chooses."""
        if (
            self.config.checkpoint == "best"
            and self._best_weights is not None
            and self.progress.best_epoch is not None
        ):
            return self.progress.best_epoch, self._best_weights
        return self.progress.epoch, self.network.weight_copies()

    def _rest_of_epoch(self) -> Iterator[Minibatch]:
        """Yield this process's rows of the remaining minibatches of the current epoch."""
        sizes, done = (self.plan.batch_size, self.plan.num_steps), self.progress.epoch_minibatches
        self._rng.bit_generator.state = self._rng_at_epoch_start
        for inputs, targets in minibatches(
            self.config.sampling, self._train_ids, *sizes, self._rng, done=done
        ):
            yield inputs[self._shard], targets[self._shard]

    def _train_minibatch(self, inputs: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        progress, totals, network = self.progress, self._totals, self.network
        if self._carried is None or self.config.sampling == "random":
            self._carried = network.initial_state(len(inputs))
        gradient_mask = None
        if self.config.truncation == "randomized":
            shape = (self.plan.num_steps, self.plan.batch_size)
            gradient_mask = mask(self._masks_rng, self.config.keep_probability, shape)
            gradient_mask = gradient_mask[:, self._shard]
        nll, self._carried = network.compute_gradients(
            inputs, targets, self._carried, self._dropout_mask, gradient_mask
        )
        self.ranks.average(network.gradients)
        norm = network.clip_gradients(self._max_norm)
        network.step(scheduled_lr(self.config, progress.share_after_next))
        totals.add(nll, norm, self._max_norm)
        if progress.epoch_minibatches % MINIBATCHES_BETWEEN_CHECKS == 0:
            self._train_perplexity()  # raises DivergenceError
        progress.epoch_minibatches += 1
        progress.minibatches += 1

    def _dropout_mask(self, size: int, dropout: float) -> NDArray[np.float32]:
        """Factors (B, 1, size). All processes draw those of all batch rows."""
        return mask(self._masks_rng, 1 - dropout, (self.plan.batch_size, 1, size))[self._shard]

    def _end_epoch(self) -> None:
        self.progress.num_epochs += 1
        self.progress.epoch_minibatches = 0
        self._rng_at_epoch_start = self._rng.bit_generator.state
        self._carried = None
        if self.plan.num_minibatches is None:
            self._end_row()

    def _end_row(self) -> None:
        totals = self._totals
        row = HistoryRow(
            epoch=self.progress.epoch,
            train_perplexity=self._train_perplexity(),
            val_perplexity=self._validate(),
            grad_norm=float(totals.norm) / totals.minibatches,
            clipped_share=float(totals.clipped) / totals.minibatches,
            tokens=self.progress.tokens,
        )
        self.progress.history.append(row)
        self._totals = RunningTotals()
        if self.prefix.size and is_sampled(len(self.progress.history), self.plan.num_rows):
            # The most likely tokens, so that no random number is drawn.
            tokens = continue_prefixes(self.network, self.prefix, SAMPLE_TOKENS)[0]
            self.progress.samples.append([row.epoch, tokens.tolist()])

    def _train_perplexity(self) -> float:
        """Return the perplexity of the tokens since the last history row, over all processes.

        Raises DivergenceError if it is not finite.
        """
        nll = self.ranks.mean(float(self._totals.nll))  # all have the same number of tokens
        value = perplexity(nll, self._totals.tokens)
        if not math.isfinite(value):  # a finite sum may still be too large
            advice = (
                "set grad_clip to 1" if self.config.grad_clip is None else "lower lr or grad_clip"
            )
            epoch = max(math.ceil(self.progress.epoch), 1)
            raise DivergenceError(
                f"run {self.config.run}: the loss is not finite in epoch {epoch}: {advice}, or "
                "choose another seed"
            )
        return value

    def _validate(self) -> float | None:
        """Return the perplexity on val, if the row that ends here has one, and remember the best
        weights."""
        progress, row_number = self.progress, len(self.progress.history) + 1
        if row_number % self.config.eval_every and row_number != self.plan.num_rows:
            return None
        nll = val_nll(self.network, self._val_ids, self.plan.val_token_budget(self.config))
        value = perplexity(float(nll.sum()), len(nll))
        progress.evaluations_since_best += 1
        if value < progress.best_val_perplexity:
            progress.best_epoch, progress.best_val_perplexity = progress.epoch, value
            progress.evaluations_since_best = 0
            self._best_weights = self.network.weight_copies()
        return value

    def state(self) -> Checkpointed:
        """Return everything that training needs to resume as if it had not stopped.

        If several processes train, all must call this: each adds its own totals and carried state.
        """
        carried = [] if self._carried is None else self.network.state_arrays(self._carried)
        processes = self.ranks.all_gather((self._totals.values(), carried))
        groups: dict[str, Mapping[Any, NDArray[Any]]] = {
            "network": self.network.weight_copies(),
            "best": self._best_weights or {},
            "optimizer": self.network.optimizer_state,
        }
        groups |= {
            f"carried.{rank}": dict(enumerate(one)) for rank, (_, one) in enumerate(processes)
        }
        arrays = {f"{group}.{name}": one for group in groups for name, one in groups[group].items()}
        progress = asdict(self.progress)
        del progress["plan"]
        values = {
            "masks_rng": self._masks_rng.bit_generator.state,
            "rng": self._rng_at_epoch_start,
            "totals": [totals for totals, _ in processes],
            "progress": progress,
        }
        return arrays, values

    def restore(self, state: Checkpointed) -> None:
        """Resume from what :meth:`state` returned."""
        arrays, values = state
        self.network.load_weights(_of_prefix("network", arrays))
        self._best_weights = _of_prefix("best", arrays) or None
        self.network.load_optimizer(_of_prefix("optimizer", arrays))
        self._masks_rng.bit_generator.state = values["masks_rng"]
        self._rng_at_epoch_start = values["rng"]
        self._totals = RunningTotals(*values["totals"][self.ranks.rank])
        carried = _of_prefix(f"carried.{self.ranks.rank}", arrays)
        in_order = [carried[str(index)] for index in range(len(carried))]
        self._carried = self.network.state_of_arrays(in_order) if in_order else None
        progress = values["progress"]
        history = [HistoryRow(**row) for row in progress["history"]]
        self.progress = Progress(self.plan, **progress | {"history": history})


def _of_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    start = f"{prefix}."
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def scheduled_lr(config: RunConfig, share_done: float) -> float:
    """Return the learning rate of the minibatch that ends after a share of a training run.

    The share is from 0 to 1. So the first minibatch of a warm-up has a rate above 0.
    """
    if config.schedule == "constant":
        return config.lr
    if share_done < config.warmup_share:
        factor = share_done / config.warmup_share
    else:
        decayed = (share_done - config.warmup_share) / (1 - config.warmup_share)
        factor = _FINAL_LR_SHARE + (1 - _FINAL_LR_SHARE) * (1 + math.cos(math.pi * decayed)) / 2
    return config.lr * factor


def val_nll(network: Network, ids: NDArray[np.integer], max_tokens: int) -> Nll:
    """Return -log p of the tokens of a split that an evaluation reads.

    A split of at most ``max_tokens`` tokens is scored completely, as one stream or, if it is long,
    as parts read in parallel. Of a longer split, 64 evenly spaced passages are scored. Each, except
    the first part, begins with a warm-up that is read and not scored; ``max_tokens`` includes the
    warm-ups of passages.
    """
    num_targets = len(ids) - 1
    if len(ids) > max_tokens:
        length = max_tokens // _NUM_PASSAGES
        starts = window_starts(_NUM_PASSAGES, length, num_targets)
        return _windows_nll(network, ids, starts, length, starts + min(_WARMUP, length // 2))
    num_parts = min(_MAX_PARTS, num_targets // _MIN_PART_TOKENS)
    if num_parts < 2:
        return stream_nll(network, ids)
    length = _WARMUP + -(-(num_targets - _WARMUP) // num_parts)
    starts = np.minimum(np.arange(num_parts) * (length - _WARMUP), num_targets - length)
    return _windows_nll(network, ids, starts, length, np.append(0, starts[:-1] + length))


def _windows_nll(
    network: Network,
    ids: NDArray[np.integer],
    starts: NDArray[np.int64],
    length: int,
    scored_from: NDArray[np.int64],
) -> Nll:
    """Return -log p of windows of ``length`` targets that are read in parallel, each from its
    position in the text ``scored_from`` on."""
    windows = ids[starts[:, None] + np.arange(length + 1)].astype(np.int64)
    nll = rows_nll(network, windows)
    return nll[starts[:, None] + np.arange(length) >= scored_from[:, None]]
