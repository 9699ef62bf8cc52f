"""What happens while a network trains: checkpoints, the terminal, Ctrl-C."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seqlm.core.errors import Interrupted
from seqlm.core.files import write_table
from seqlm.networks.network import continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.history import history_table
from seqlm.train.trainer import MINIBATCHES_BETWEEN_CHECKS, Callback, Trainer
from seqlm.vocab.vocabulary import Vocab


def checkpoint_writer(checkpoint: Checkpoint, seconds: float) -> Callback:
    """Return a callback that saves a checkpoint every ``seconds``, within epochs too; all processes save together."""
    last = time.monotonic()

    def save(trainer: Trainer) -> None:
        nonlocal last
        ranks = trainer.ranks
        every = 1 if ranks.size == 1 else MINIBATCHES_BETWEEN_CHECKS
        if trainer.is_done or trainer.progress.minibatches % every:
            return
        if ranks.broadcast(time.monotonic() - last >= seconds):
            state = trainer.state()
            if ranks.is_first:
                checkpoint.save(*state)
            last = time.monotonic()

    return save


_SAMPLE_TOKENS = 50


def train_to_end(
    trainer: Trainer, checkpoint: Checkpoint, keep_sample: Callback, vocab: Vocab, prefix: str, reports: Path
) -> None:
    """Train to the end; show it on the terminal and in ``reports``. Raises Interrupted after Ctrl-C."""
    save = checkpoint_writer(checkpoint, trainer.config.save_every_s)
    with terminal(trainer, vocab, prefix) as show, live_history(reports) as write_history:

        def after_minibatch(trainer: Trainer) -> None:
            show(trainer)
            write_history(trainer)
            keep_sample(trainer)
            save(trainer)

        try:
            trainer.train(after_minibatch)
        except KeyboardInterrupt as error:
            name = os.environ.get("DVC_EXP_NAME")  # only `dvc exp run` stores an experiment
            again = f"dvc exp run --name {name}" if name else "dvc repro"
            where = f"at epoch {trainer.progress.epoch:.4g}"
            raise Interrupted(f"interrupted {where}; `{again}` continues from the last checkpoint") from error


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


@contextmanager
def live_history(reports: Path) -> Iterator[Callback]:
    """Give a callback that writes ``history.csv`` after each evaluation, so that plots show a run while it trains.

    It is the history of a finished run only if ``summary.json``, which the stage writes last, is beside it. Where that
    file is already, the folder has an older result, which stays as it is. If training fails or is interrupted, the
    history is removed; a killed process leaves it.
    """
    is_finished, rows_written = (reports / "summary.json").exists(), 0

    def write(trainer: Trainer) -> None:
        nonlocal rows_written
        rows = trainer.progress.history
        if not is_finished and len(rows) > rows_written and (not rows_written or rows[-1].val_perplexity is not None):
            rows_written = len(rows)
            write_table(reports, "history", history_table(trainer.config.run, rows))

    try:
        yield write
    except BaseException:
        if rows_written:
            (reports / "history.csv").unlink(missing_ok=True)
        raise


def describe_plan(trainer: Trainer) -> list[str]:
    """Return what a training run will do, in lines."""
    config, plan = trainer.config, trainer.plan
    tokens, epochs = plan.batches_per_epoch * plan.tokens_per_batch, _format_epochs(plan.epochs_to_train)
    lines = [f"{plan.tokens_to_train:,} tokens to train on: {epochs} epochs of {tokens:,}"]
    if plan.limit is not None:
        lines[0] += f", limited by {plan.limit}"
        if plan.epochs_to_train < 1:
            lines.append(f"this is {plan.epochs_to_train:.1%} of the text: raise {plan.limit} to train on more")
    if plan.batch_reduced:
        lines.append(
            f"the text has {plan.num_tokens:,} tokens, too few for minibatches of {config.batch_size} x "
            f"{config.num_steps}: it is cut into minibatches of {plan.batch_size} x {plan.num_steps}"
        )
    return lines


def _format_epochs(value: float) -> str:
    """Return a number of epochs, whole numbers without a fraction."""
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"
