"""What happens around a training: checkpoints, and what the terminal shows.

A checkpoint holds a hash of everything that decides the result, so that one of other settings,
other data or other code is never used.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save as save_arrays
from tqdm import tqdm

from seqlm.core.compiling import has_fma
from seqlm.core.files import write_bytes
from seqlm.core.sources import PACKAGE_FOLDER, code_hash, source_files
from seqlm.networks.architectures import ARCHITECTURES
from seqlm.networks.network import continue_prefixes
from seqlm.train.minibatches import Plan
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Callback, Checkpointed, Trainer
from seqlm.vocab.vocabulary import Vocab

_TIMES_SAVING = 100
"""Training lasts this many times as long between two checkpoints as saving one."""
_PRINTED_TOKENS = 50
_KEY, _VALUES, _DIGEST = "key", "values", "sha256"
"""Keys of the metadata of a checkpoint."""


def checkpoint_key(config: RunConfig, vocab: Vocab, num_processes: int) -> str:
    """Return a hash of everything that decides the result.

    That is settings, data, number of processes, the code of training and of the network, and
    whether networks run as compiled loops, whose states and optimizers have their own form.
    ``vocab`` has the hashes of the encoded splits.
    """
    data = [encoded.sha256 for encoded in vocab.splits.values()]
    parts = [config.model_dump_json(), *data, num_processes, has_fma()]
    entries = {Trainer.__module__, ARCHITECTURES[config.model].module}
    parts += map(code_hash, source_files(entries, [PACKAGE_FOLDER]).values())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


class Checkpoint:
    """One file of arrays and plain values, which only a training with the same ``key`` reads."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self._key = path, key

    def save(self, trainer: Trainer) -> None:
        """Replace the checkpoint, completely or not at all. All processes must call this; the first
        one writes."""
        arrays, values = trainer.state()
        if trainer.ranks.rank == 0:
            metadata = {_KEY: self._key, _VALUES: json.dumps(values)}
            metadata[_DIGEST] = arrays_digest(arrays)
            write_bytes(self.path, save_arrays(arrays, metadata))

    def restore(self, trainer: Trainer) -> bool:
        """Resume from what was saved; return whether there is a complete checkpoint with this key.

        Processes on several machines each have their own folder: all load the checkpoint of the
        first.
        """
        state = None
        if trainer.ranks.rank == 0 and self.path.exists():
            with suppress(Exception):  # a broken file may raise anything
                state = self._read()
        state = trainer.ranks.broadcast(state)
        if state is not None:
            trainer.restore(state)
        return state is not None

    def is_checkpoint(self) -> bool:
        """Return whether the file is a checkpoint, with any key."""
        with suppress(Exception), safe_open(self.path, framework="numpy") as file:
            return _KEY in (file.metadata() or {})
        return False

    def _read(self) -> Checkpointed | None:
        with safe_open(self.path, framework="numpy") as file:
            metadata = file.metadata()
            names = file.keys()  # the file itself cannot be iterated
            arrays = {name: file.get_tensor(name) for name in names}
        fits = metadata[_KEY] == self._key and metadata[_DIGEST] == arrays_digest(arrays)
        return (arrays, json.loads(metadata[_VALUES])) if fits else None


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays by name."""
    sha256 = hashlib.sha256()
    for name in sorted(arrays):
        sha256.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return sha256.hexdigest()


def periodic_saver(checkpoint: Checkpoint) -> Callback:
    """Return a callback that saves checkpoints, within epochs too; all processes save together.

    The first is saved at once, later ones so that saving takes about a hundredth of the time.
    """
    due = time.monotonic()

    def save(trainer: Trainer) -> None:
        nonlocal due
        begin = time.monotonic()
        if trainer.can_be_saved and trainer.ranks.broadcast(begin >= due):
            checkpoint.save(trainer)
            due = time.monotonic() + _TIMES_SAVING * (time.monotonic() - begin)

    return save


@contextmanager
def terminal(
    trainer: Trainer, vocab: Vocab, *, is_hidden: bool | None = None
) -> Iterator[Callback]:
    """Give a callback that shows a progress bar of tokens, and how the network continues the
    trainer's prefix. By default the bar is hidden if there is no terminal."""
    rows_shown = len(trainer.progress.history)

    def show(trainer: Trainer) -> None:
        nonlocal rows_shown
        progress, config = trainer.progress, trainer.config
        bar.update(progress.tokens - bar.n)
        if len(progress.history) == rows_shown:
            return
        rows_shown, row = len(progress.history), progress.history[-1]
        epoch = _format_epochs(row.epoch)
        bar.set_postfix(
            epoch=epoch,
            train=f"{row.train_perplexity:.3f}",
            val=f"{progress.best_val_perplexity:.3f}",
        )
        if trainer.prefix.size and config.sample_every and rows_shown % config.sample_every == 0:
            tokens = continue_prefixes(trainer.network, trainer.prefix, _PRINTED_TOKENS)[0]
            text = vocab.join(vocab.decode([*trainer.prefix[0].tolist(), *tokens.tolist()]))
            tqdm.write(f"epoch {epoch}, train perplexity {row.train_perplexity:.2f}: {text}")

    options: dict[str, Any] = {"unit": " tokens", "unit_scale": True, "disable": is_hidden}
    with tqdm(
        total=trainer.plan.tokens_to_train, initial=trainer.progress.tokens, **options
    ) as bar:
        yield show


def describe_plan(plan: Plan) -> str:
    """Return what a training run will do, in a line."""
    tokens = plan.batches_per_epoch * plan.tokens_per_batch
    epochs = _format_epochs(plan.epochs_to_train)
    limit = "" if plan.num_minibatches is None else ", limited by token_budget"
    return f"{plan.tokens_to_train:,} tokens to train on: {epochs} epochs of {tokens:,}{limit}"


def _format_epochs(value: float) -> str:
    """Return a number of epochs, whole numbers without a fraction."""
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"
