"""What happens while a network trains: checkpoints, the terminal, Ctrl-C."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from seqlm.core.errors import DataError, Interrupted
from seqlm.networks.network import continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.samples import keep_sample
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import MINIBATCHES_BETWEEN_CHECKS, Callback, Trainer
from seqlm.vocab.corpus import AUTO, prompts
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


def train_to_end(trainer: Trainer, checkpoint: Checkpoint, vocab: Vocab, prefix: str) -> None:
    """Run a training to its end, and show it on the terminal. Raises Interrupted after Ctrl-C."""
    save = checkpoint_writer(checkpoint, trainer.config.save_every_s)
    ids = vocab.encode(vocab.tokenize(prefix))
    with terminal(trainer, vocab, prefix) as show:

        def after_minibatch(trainer: Trainer) -> None:
            show(trainer)
            keep_sample(trainer, ids)
            save(trainer)

        try:
            trainer.train(after_minibatch)
        except KeyboardInterrupt as error:
            name = os.environ.get("DVC_EXP_NAME")  # only `dvc exp run` stores an experiment
            again = f"dvc exp run --name {name}" if name else "dvc repro"
            where = f"at epoch {trainer.progress.epoch:.4g}"
            raise Interrupted(f"interrupted {where}; `{again}` continues from the last checkpoint") from error


def sample_prefix(config: RunConfig, vocab: Vocab, val_ids: NDArray[np.integer]) -> str:
    """Return what a run's samples continue: the text of the setting, or the beginning of val.

    The beginning of val is used for ``auto``, and if the vocabulary lacks most tokens of the setting's text. If val
    begins with unknown tokens only, the text is empty, and no samples are printed.
    """
    tokens = vocab.tokenize(config.sample_prefix)
    num_known = sum(token in vocab for token in tokens)
    if config.sample_prefix != AUTO and num_known >= max(len(tokens), 1) / 2:
        return config.sample_prefix
    with suppress(DataError):
        return prompts(vocab, val_ids, 1)[0]
    return ""


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
    """Return what a training will do, in lines."""
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
