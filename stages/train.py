"""Train one run."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import file, folder, stage

if TYPE_CHECKING:
    from seqlm.checkpoints import Checkpoint
    from seqlm.ranks import Ranks
    from seqlm.training import Trainer
    from seqlm.vocab import Vocab


@stage()
@click.option("--config", "config_path", type=file(), required=True, help="The run's resolved settings.")
@click.option("--corpus", type=folder(), default="data/corpus", help="The encoded splits of both kinds.")
@click.option("--models", type=folder(), required=True, help="Where the weights go.")
@click.option("--reports", type=folder(), required=True, help="Where the history goes.")
@click.option("--checkpoints", type=folder(), default="checkpoints", help="Where an interrupted training goes on from.")
def main(config_path: Path, corpus: Path, models: Path, reports: Path, checkpoints: Path) -> None:
    """Train one run.

    An interrupted training goes on from its last checkpoint and ends with the same
    weights as one that was not interrupted. Started by torchrun, several processes train
    together, each on a share of every minibatch.
    """
    import torch

    from seqlm.checkpoints import Checkpoint, key_of, only_one
    from seqlm.devices import resolve_device
    from seqlm.params.train import read_config
    from seqlm.ranks import joined, local_device, local_threads
    from seqlm.rnn.building import save_model
    from seqlm.training import Trainer
    from seqlm.vocab import Vocab, load_split

    config = read_config(config_path)
    torch.set_num_threads(local_threads(config.num_threads))
    device = local_device(resolve_device(config.device))
    folder_of_kind = corpus / config.token
    vocab = Vocab.load(folder_of_kind / "vocab.json")
    train_ids, val_ids = (load_split(folder_of_kind, split) for split in ("train", "val"))
    with joined(device) as ranks:
        trainer = Trainer(config, len(vocab), train_ids, val_ids, device, ranks)
        _say_hello(trainer, ranks)
        data = [vocab.splits[split].sha256 for split in ("train", "val")]
        key = key_of(config.model_dump_json(), str(ranks.size), *data, *_code())
        checkpoint = Checkpoint(checkpoints, config.run, key)
        with only_one(checkpoints, config.run) if ranks.is_first else nullcontext():
            ranks.wait()
            if saved := checkpoint.load():
                trainer.restore(*saved)
            if not ranks.is_first:
                trainer.run(lambda _: None)
                return
            _train(trainer, checkpoint, vocab)
            epoch, weights = trainer.chosen_weights()
            _write_history(trainer, epoch, reports)
            save_model(models, config, len(vocab), weights)
            checkpoint.remove()


def _say_hello(trainer: "Trainer", ranks: "Ranks") -> None:
    if ranks.is_first:
        num_parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
        processes = f", {ranks.size} processes" if ranks.size > 1 else ""
        click.echo(f"run {trainer.config.run} on {trainer.device}{processes}, {num_parameters:,} parameters")


def _code() -> list[str]:
    """Return hashes of the modules that decide a training's result."""
    import seqlm
    from seqlm.files import sha256_of_file

    library = Path(seqlm.__file__).parent
    modules = ["metrics", "minibatches", "ranks", "training"]
    network = ["building", "framework", "scratch", "compiled", "kernels", "products", "team", "tiles", "elementary"]
    return [sha256_of_file(library / f"{name}.py") for name in [*modules, *(f"rnn/{name}" for name in network)]]


def _train(trainer: "Trainer", checkpoint: "Checkpoint", vocab: "Vocab") -> None:
    """Run the training to its end, with a progress bar, printed samples and checkpoints."""
    import time

    from tqdm import tqdm

    from seqlm.generation import Choice, continue_prefixes

    config, last_save = trainer.config, time.monotonic()
    if trainer.progress.num_epochs:
        click.echo(f"going on after epoch {trainer.progress.num_epochs}")
    prefix = vocab.encode(vocab.tokenize(config.sample_prefix)).tolist()
    bar = tqdm(total=config.num_epochs, initial=trainer.progress.num_epochs, unit="epoch", disable=None)

    def after_epoch(trainer: "Trainer") -> None:
        nonlocal last_save
        row = trainer.progress.history[-1]
        bar.update()
        bar.set_postfix(train=f"{row.train_perplexity:.3f}", val=f"{trainer.progress.best_val_perplexity:.3f}")
        if config.sample_every and row.epoch % config.sample_every == 0 and prefix:
            (tokens,) = continue_prefixes(trainer.model, [prefix], 50, Choice(), config.seed)
            text = vocab.join(vocab.decode([*prefix, *tokens]))
            tqdm.write(f"epoch {row.epoch}, train perplexity {row.train_perplexity:.2f}: {text}")
        if not trainer.is_done and time.monotonic() - last_save >= config.checkpoint_s:
            checkpoint.save(*trainer.state())
            last_save = time.monotonic()

    with bar:
        trainer.run(after_epoch)


def _write_history(trainer: "Trainer", kept_epoch: int, reports: Path) -> None:
    from dataclasses import asdict

    import pandas as pd

    from seqlm.files import write_csv, write_json

    history, progress = trainer.progress.history, trainer.progress
    write_csv(reports / "history.csv", pd.DataFrame([{"run": trainer.config.run} | asdict(row) for row in history]))
    looks = [row for row in history if row.val_perplexity is not None]
    write_json(
        reports / "metrics.json",
        {
            "epochs": len(history),
            "kept_epoch": kept_epoch,
            "last_epoch_train_perplexity": history[-1].train_perplexity,
            "last_val_perplexity": _finite(looks[-1].val_perplexity) if looks else None,
            "best_val_perplexity": _finite(progress.best_val_perplexity),
            "best_epoch": progress.best_epoch,
            "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        },
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


if __name__ == "__main__":
    main()
