"""The results of a training run besides its weights: a summary, and samples from the first epoch to
the last."""

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.train.history import finite_or_none
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import AUTO, known_prefixes
from seqlm.vocab.vocabulary import Vocab


def summarise(trainer: Trainer) -> dict[str, Any]:
    """Return the result of a training run; values that are not finite are None."""
    progress = trainer.progress
    evaluations = [row.val_perplexity for row in progress.history if row.val_perplexity is not None]
    kept_epoch, _ = trainer.chosen_weights()
    summary: dict[str, Any] = {
        "epochs": progress.epoch,
        "kept_epoch": kept_epoch,
        "last_epoch_train_perplexity": progress.history[-1].train_perplexity,
        "last_val_perplexity": finite_or_none(evaluations[-1]) if evaluations else None,
        "best_val_perplexity": finite_or_none(progress.best_val_perplexity),
        "best_epoch": progress.best_epoch,
        "parameters": trainer.network.num_parameters,
        "engine": trainer.network.engine,
        "tokens": progress.tokens,
    }
    if infinite := sum(not math.isfinite(value) for value in evaluations):
        times = f"{infinite} of {len(evaluations)} times"
        summary["reason"] = f"perplexity on the validation set is too large for a number {times}"
    return summary


def sample_prefix(
    config: RunConfig, vocab: Vocab, train_ids: NDArray[np.integer], val_ids: NDArray[np.integer]
) -> str:
    """Return what a run's samples continue: the text of the setting, or the beginning of val.

    The beginning of val is used for ``auto``, and if the part of train that the run reads never has
    the setting's text. If val begins with unknown tokens only, the text is empty, and no samples
    are printed.
    """
    wanted = AUTO if config.sample_prefix == AUTO else [config.sample_prefix]
    with suppress(DataError):
        return known_prefixes(wanted, vocab, train_ids[: config.max_tokens], val_ids, 1)[0]
    return ""


def describe_samples(samples: list[list[Any]], vocab: Vocab, prefix: str) -> dict[str, Any]:
    """Return the prefix, and the epoch and the text of each sample, without the prefix."""
    texts = [
        {"epoch": epoch, "text": vocab.join(vocab.decode(tokens))} for epoch, tokens in samples
    ]
    return {"prefix": prefix, "samples": texts}
