"""What a network writes while it is trained: the same text continued, from the first epoch to the last."""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.networks.network import continue_prefixes
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import AUTO, occurs, prompts
from seqlm.vocab.vocabulary import Vocab

FIRST_ROWS, EVEN_ROWS = 10, 40
"""Rows of the history that have a sample: so many first ones, and so many evenly spaced ones."""
SAMPLE_TOKENS = 100


def sample_prefix(config: RunConfig, vocab: Vocab, train_ids: NDArray[np.integer], val_ids: NDArray[np.integer]) -> str:
    """Return what a run's samples continue: the text of the setting, or the beginning of val.

    The beginning of val is used for ``auto``, and if train never has the setting's text. If val begins with unknown
    tokens only, the text is empty, and no samples are printed.
    """
    if config.sample_prefix != AUTO and occurs(vocab.encode(vocab.tokenize(config.sample_prefix)), train_ids):
        return config.sample_prefix
    with suppress(DataError):
        return prompts(vocab, val_ids, 1)[0]
    return ""


def is_sampled(row: int, num_rows: int) -> bool:
    """Return whether a row of the history, counted from 1, has a sample. The last one does."""
    return row <= FIRST_ROWS or row * EVEN_ROWS // num_rows > (row - 1) * EVEN_ROWS // num_rows


def keep_sample(trainer: Trainer, prefix: NDArray[np.int64]) -> None:
    """Add how the network continues ``prefix`` (T,) to the progress, if the last row of the history lacks its sample.

    Each token is the most likely one, so that no random number is drawn.
    """
    history, samples = trainer.progress.history, trainer.progress.samples
    if not (len(prefix) and history and is_sampled(len(history), trainer.plan.num_rows)):
        return
    if not samples or samples[-1][0] < history[-1].epoch:
        tokens = continue_prefixes(trainer.network, prefix[None], SAMPLE_TOKENS)[0]
        samples.append([history[-1].epoch, tokens.tolist()])


def describe_samples(samples: list[list[Any]], vocab: Vocab, prefix: str) -> dict[str, Any]:
    """Return the prefix, and the epoch and the text of each sample, without the prefix."""
    texts = [{"epoch": epoch, "text": vocab.join(vocab.decode(tokens))} for epoch, tokens in samples]
    return {"prefix": prefix, "samples": texts}
