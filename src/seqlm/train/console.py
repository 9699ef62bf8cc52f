"""A training at a terminal: what it says beforehand, its progress bar, the samples that it prints."""

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from seqlm.rnn.generation import SamplingConfig, continue_prefixes
from seqlm.train.callbacks import Board, Events, HistoryWriter
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.contention import ContentionMonitor
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import MINIBATCHES_BETWEEN_CHECKS, Callback, Trainer
from seqlm.vocab.prompts import AUTO, prompts
from seqlm.vocab.vocabulary import Vocab

_SAMPLE_TOKENS = 50
_MEASURED_S = 2.0
"""Seconds over which the rate of a training is measured before its end is foretold."""
_LONG_S = 3600.0


def train_to_end(
    trainer: Trainer, checkpoint: Checkpoint, vocab: Vocab, prefix: str, reports: Path, board: Board | None
) -> None:
    """Run a training to its end and show it on the terminal, in ``reports`` and on TensorBoard's ``board``.

    Raises CrowdedError where it should go on in a new process.
    """
    terminal = Terminal(trainer, vocab, prefix)
    others = ContentionMonitor(checkpoint)
    watches: list[Callback] = [terminal, CheckpointCallback(checkpoint, trainer), HistoryWriter(reports), others]
    if board is not None:
        watches.append(Events(board, trainer))

    def watch(trainer: Trainer) -> None:
        for look in watches:
            look(trainer)

    try:
        trainer.run(watch)
    finally:
        terminal.close()
        if board is not None:
            board.close()


def own_prefix(config: RunConfig, vocab: Vocab, val_ids: NDArray[np.integer]) -> str:
    """Return what a run's samples continue: the setting's words, or the beginning of val for ``auto``."""
    return prompts(vocab, val_ids, 1)[0] if config.sample_prefix == AUTO else config.sample_prefix


class CheckpointCallback:
    """Saves a checkpoint every ``checkpoint_s`` seconds, inside an epoch too; all processes do it together."""

    def __init__(self, checkpoint: Checkpoint, trainer: Trainer) -> None:
        self._checkpoint, self._last = checkpoint, time.monotonic()
        # Processes ask each other, which takes time.
        self._every = 1 if trainer.ranks.size == 1 else MINIBATCHES_BETWEEN_CHECKS

    def __call__(self, trainer: Trainer) -> None:
        """Save if it is time."""
        if trainer.is_done or trainer.progress.minibatches % self._every:
            return
        if trainer.ranks.any_rank(time.monotonic() - self._last >= trainer.config.checkpoint_s):
            state = trainer.state()
            if trainer.ranks.is_first:
                self._checkpoint.save(*state)
            self._last = time.monotonic()


class Terminal:
    """Shows a training: a bar that counts tokens, when it will end, and what the network writes by then."""

    def __init__(self, trainer: Trainer, vocab: Vocab, prefix: str) -> None:
        """Begin. ``prefix`` is what the samples continue; "" for none."""
        self._vocab, self._prefix = vocab, vocab.encode(vocab.tokenize(prefix)).tolist()
        self._legs = len(trainer.progress.history)
        self._bar = tqdm(
            total=trainer.plan.tokens_to_train,
            initial=trainer.tokens_trained,
            unit=" tokens",
            unit_scale=True,
            disable=None,
        )
        self._forecast = Forecast()

    def __call__(self, trainer: Trainer) -> None:
        """Show what is new."""
        self._bar.update(trainer.tokens_trained - self._bar.n)
        if line := self._forecast(trainer):
            tqdm.write(line)
        if len(trainer.progress.history) > self._legs:
            self._legs = len(trainer.progress.history)
            self._show_leg(trainer)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def _show_leg(self, trainer: Trainer) -> None:
        leg, config = trainer.progress.history[-1], trainer.config
        best = trainer.progress.best_val_perplexity
        self._bar.set_postfix(epoch=_epochs(leg.epoch), train=f"{leg.train_perplexity:.3f}", val=f"{best:.3f}")
        if config.sample_every and self._legs % config.sample_every == 0 and self._prefix:
            (tokens,) = continue_prefixes(
                trainer.network, [self._prefix], _SAMPLE_TOKENS, SamplingConfig(), config.seed
            )
            text = self._vocab.join(self._vocab.decode([*self._prefix, *tokens]))
            tqdm.write(f"epoch {_epochs(leg.epoch)}, train perplexity {leg.train_perplexity:.2f}: {text}")


class Forecast:
    """Says once, from the rate of the first seconds, when a training will end."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None
        self._is_said = False

    def __call__(self, trainer: Trainer) -> str | None:
        """Return the line when it is time to say it, else None.

        The first minibatch does not count: loops are compiled and buffers made in it.
        """
        now, tokens = time.monotonic(), trainer.tokens_trained
        if self._start is None:
            self._start = (now, tokens)
        seconds = now - self._start[0]
        if self._is_said or seconds < _MEASURED_S or trainer.is_done:
            return None
        self._is_said = True
        return forecast_line((tokens - self._start[1]) / seconds, trainer.plan.tokens_to_train - tokens, time.time())


def forecast_line(rate: float, tokens_left: int, now: float) -> str:
    """Return when a training ends that has so many tokens left at a rate of tokens a second; ``now`` in Unix time."""
    seconds = max(tokens_left, 0) / rate
    clock = time.strftime("%H:%M" if seconds < 43_200 else "%Y-%m-%d %H:%M", time.localtime(now + seconds))
    line = f"{rate:,.0f} tokens a second: done in about {duration(seconds)}, at {clock}"
    if seconds > _LONG_S:
        line += f" (max_trained_tokens: {_round_figure(rate * 600):,} would take about ten minutes)"
    return line


def describe_plan(trainer: Trainer) -> list[str]:
    """Return what a training says of itself before it begins, in lines."""
    config, plan = trainer.config, trainer.plan
    tokens = plan.batches_per_epoch * plan.tokens_per_batch
    epochs = _epochs(plan.epochs_to_train)
    lines = [f"{plan.tokens_to_train:,} tokens to train on: {epochs} epochs of {tokens:,}"]
    if plan.is_bounded:
        lines[0] += f", where {plan.bound} ends it"
        if plan.epochs_to_train < 1:
            lines.append(f"it sees {plan.epochs_to_train:.1%} of its text: raise {plan.bound} for more")
    if plan.batch_reduced:
        lines.append(
            f"the text has {plan.num_tokens:,} tokens, too few for minibatches of {config.batch_size} x "
            f"{config.num_steps}: it is trained in minibatches of {plan.batch_size} x {plan.num_steps}"
        )
    return lines


def duration(seconds: float) -> str:
    """Return a time span as a person says it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < _LONG_S:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours / 24:.1f} days"


def _epochs(value: float) -> str:
    """Return a number of epochs, whole ones without a fraction."""
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


def _round_figure(value: float) -> int:
    """Return a number rounded to its first digit."""
    digits = len(str(int(value))) - 1
    return round(int(value), -digits)
