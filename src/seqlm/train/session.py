"""A training at a terminal: its progress bar, the samples that it prints, and its checkpoints."""

import time

from tqdm import tqdm

from seqlm.rnn.continuing import Choice, continue_prefixes
from seqlm.train.checkpoints import Checkpoint
from seqlm.train.trainer import Trainer
from seqlm.vocab.vocabulary import Vocab

_SAMPLE_TOKENS = 50


def train_to_end(trainer: Trainer, checkpoint: Checkpoint, vocab: Vocab) -> None:
    """Run a training to its end, saying how it goes and saving a checkpoint every ``checkpoint_s`` seconds."""
    config, last_save = trainer.config, time.monotonic()
    prefix = vocab.encode(vocab.tokenize(config.sample_prefix)).tolist()
    bar = tqdm(total=config.num_epochs, initial=trainer.progress.num_epochs, unit="epoch", disable=None)

    def after_epoch(trainer: Trainer) -> None:
        nonlocal last_save
        row = trainer.progress.history[-1]
        bar.update()
        bar.set_postfix(train=f"{row.train_perplexity:.3f}", val=f"{trainer.progress.best_val_perplexity:.3f}")
        if config.sample_every and row.epoch % config.sample_every == 0 and prefix:
            (tokens,) = continue_prefixes(trainer.network, [prefix], _SAMPLE_TOKENS, Choice(), config.seed)
            text = vocab.join(vocab.decode([*prefix, *tokens]))
            tqdm.write(f"epoch {row.epoch}, train perplexity {row.train_perplexity:.2f}: {text}")
        if not trainer.is_done and time.monotonic() - last_save >= config.checkpoint_s:
            checkpoint.save(*trainer.state())
            last_save = time.monotonic()

    with bar:
        trainer.run(after_epoch)
