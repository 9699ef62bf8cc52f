"""What happens while a network trains: checkpoints, the terminal, Ctrl-C."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm import tqdm

from seqlm.core.errors import Interrupted
from seqlm.networks.network import continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.trainer import MINIBATCHES_BETWEEN_CHECKS, Callback, Trainer
from seqlm.vocab.vocabulary import Vocab


@contextmanager
def checkpoint_writer(checkpoint: Checkpoint) -> Iterator[Callback]:
    """Give a callback that saves checkpoints, within epochs too; all processes save together.

    The first is saved at once, later ones so that saving takes about a hundredth of the time. After Ctrl-C the callback
    saves one more and raises Interrupted. Ctrl-C again ends the process at once.
    """
    due = time.monotonic()

    def save(trainer: Trainer) -> None:
        nonlocal due
        ranks = trainer.ranks
        every = 1 if ranks.size == 1 else MINIBATCHES_BETWEEN_CHECKS
        if trainer.is_done or trainer.progress.minibatches % every:
            return
        begin = time.monotonic()
        is_interrupted, is_due = ranks.broadcast((pressed.is_set(), begin >= due))
        if is_interrupted or is_due:
            state = trainer.state()
            if ranks.rank == 0:
                checkpoint.save(state)
            due = time.monotonic() + _TIMES_SAVING * (time.monotonic() - begin)
        if is_interrupted:
            name = os.environ.get("DVC_EXP_NAME")  # only `dvc exp run` stores an experiment
            again = f"dvc exp run --name {name}" if name else "dvc repro"
            raise Interrupted(f"interrupted at epoch {trainer.progress.epoch:.4g}; `{again}` continues from there")

    with _ctrl_c() as pressed:
        yield save


_TIMES_SAVING = 100
_SAMPLE_TOKENS = 50


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Give an event that is set by the first Ctrl-C. What a shell starts in the background goes on ignoring it."""
    pressed, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def train_to_end(trainer: Trainer, checkpoint: Checkpoint, keep_sample: Callback, vocab: Vocab, prefix: str) -> None:
    """Train to the end, and show it on the terminal. Raises Interrupted after Ctrl-C."""
    with terminal(trainer, vocab, prefix) as show, checkpoint_writer(checkpoint) as save:

        def after_minibatch(trainer: Trainer) -> None:
            show(trainer)
            keep_sample(trainer)
            save(trainer)

        trainer.train(after_minibatch)


@contextmanager
def terminal(trainer: Trainer, vocab: Vocab, prefix: str) -> Iterator[Callback]:
    """Give a callback that shows a progress bar of tokens, and how the network continues ``prefix``."""
    ids, rows_shown = vocab.encode(vocab.tokenize(prefix)).tolist(), len(trainer.progress.history)

    def show(trainer: Trainer) -> None:
        nonlocal rows_shown
        progress, config = trainer.progress, trainer.config
        bar.update(progress.tokens - bar.n)
        if len(progress.history) == rows_shown:
            return
        rows_shown, row = len(progress.history), progress.history[-1]
        epoch = _format_epochs(row.epoch)
        bar.set_postfix(epoch=epoch, train=f"{row.train_perplexity:.3f}", val=f"{progress.best_val_perplexity:.3f}")
        if ids and config.sample_every and rows_shown % config.sample_every == 0:
            tokens = continue_prefixes(trainer.network, np.array([ids]), _SAMPLE_TOKENS)[0]
            text = vocab.join(vocab.decode([*ids, *tokens.tolist()]))
            tqdm.write(f"epoch {epoch}, train perplexity {row.train_perplexity:.2f}: {text}")

    options: dict[str, Any] = {"unit": " tokens", "unit_scale": True, "disable": None}
    with tqdm(total=trainer.plan.tokens_to_train, initial=trainer.progress.tokens, **options) as bar:
        yield show


def describe_plan(trainer: Trainer) -> list[str]:
    """Return what a training run will do, in lines."""
    plan = trainer.plan
    tokens, epochs = plan.batches_per_epoch * plan.tokens_per_batch, _format_epochs(plan.epochs_to_train)
    lines = [f"{plan.tokens_to_train:,} tokens to train on: {epochs} epochs of {tokens:,}"]
    if plan.num_minibatches is not None:
        lines[0] += ", limited by token_budget"
        if plan.epochs_to_train < 1:
            lines.append(f"this is {plan.epochs_to_train:.1%} of the text: raise token_budget to train on more")
    return lines


def _format_epochs(value: float) -> str:
    """Return a number of epochs, whole numbers without a fraction."""
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"
