"""Train one run, or resume it if it was interrupted."""

import environment  # noqa: F401

import os
from contextlib import nullcontext
from dataclasses import asdict

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage(if_out_of_memory="lower the batch size or the model's size")
# Not --run: torchrun takes that, even after the script's name, for an abbreviation of its own
# --run-path.
@click.option(
    "--model",
    "run",
    required=True,
    help="Name of the run to train; the stage configure must have run.",
)
def main(layout: Layout, run: str) -> None:
    """Train one run.

    An interrupted run resumes from its last checkpoint and ends with the same
    weights as one that was not interrupted. If torchrun starts several processes, they
    train together, each on some rows of every minibatch.
    """
    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_json, write_table
    from seqlm.models.info import network_info
    from seqlm.networks.building import save_network
    from seqlm.train.callbacks import (
        Checkpoint,
        checkpoint_key,
        checkpoint_writer,
        describe_plan,
        run_lock,
        terminal,
    )
    from seqlm.train.history import describe_samples, history_table, sample_prefix, summarise
    from seqlm.train.ranks import process_group
    from seqlm.train.settings import read_config
    from seqlm.train.trainer import Trainer
    from seqlm.vocab.corpus import load_split
    from seqlm.vocab.vocabulary import Vocab

    config = read_config(layout.config(run))
    num_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    num_threads = max(config.num_threads // num_processes, 1)
    device = resolve_device(config.device)
    vocab = Vocab.load(layout.vocab(config.token))
    train_ids, val_ids = (
        load_split(layout.corpus(config.token), split, vocab) for split in ("train", "val")
    )
    prefix = sample_prefix(config, vocab, train_ids, val_ids)
    with process_group(device) as ranks:
        is_first = ranks.rank == 0
        prefix_ids = vocab.encode(vocab.tokenize(prefix)).tolist()
        trainer = Trainer(
            config.model_copy(update={"num_threads": num_threads}),
            len(vocab),
            train_ids,
            val_ids,
            device,
            ranks,
            prefix_ids if is_first else (),
        )
        if is_first:
            processes = f", {ranks.size} processes" if ranks.size > 1 else ""
            click.echo(
                f"{run}: {config.describe()}, {trainer.num_parameters:,} parameters, on "
                f"{device}{processes}"
            )
            click.echo(describe_plan(trainer.plan))
        folder = layout.checkpoints / run
        checkpoint = Checkpoint(folder / "checkpoint", checkpoint_key(config, vocab, ranks.size))
        with run_lock(folder) if is_first else nullcontext():
            if saved := checkpoint.load(ranks):
                trainer.restore(saved)
            elif is_first and checkpoint.path.exists():
                click.echo(f"{run}: starts anew: its settings, data or code have changed")
            if not is_first:
                with checkpoint_writer(checkpoint) as save:
                    trainer.train(save)
                return
            if saved:
                click.echo(f"resuming after epoch {trainer.progress.epoch:.4g}")
            with terminal(trainer, vocab) as show, checkpoint_writer(checkpoint) as save:
                trainer.train(show, save)
            history, engine = trainer.progress.history, trainer.network.engine
            epoch, weights = trainer.chosen_weights()
            info = asdict(network_info(config, vocab))
            defaults = config.model_dump(include={"device", "num_threads"})
            save_network(layout.run(run), run, config, vocab.key, weights, info, defaults)
            write_json(
                layout.samples_of_run(run),
                describe_samples(trainer.progress.samples, vocab, prefix),
            )
            reports = layout.reports("train", run)
            write_table(reports, "history", history_table(run, history))
            write_table(
                reports,
                "summary",
                summarise(trainer.progress, trainer.num_parameters, epoch, engine),
            )
            checkpoint.remove_all()


if __name__ == "__main__":
    main()
