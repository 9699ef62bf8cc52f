"""Train one run, or go on with an interrupted training of it."""

from contextlib import nullcontext
from pathlib import Path

import click

from harness import stage
from seqlm.core.layout import Layout


@stage(uses_torch=True)
# torchrun takes --run, even behind the script's name, for an abbreviation of its own --run-path.
@click.option("--run", "--name", "run", required=True, help="A run's name; configure has written its settings.")
@click.option("--tensorboard", type=click.Path(path_type=Path, file_okay=False), help="Write TensorBoard events here.")
def main(layout: Layout, run: str, tensorboard: Path | None) -> None:
    """Train one run.

    An interrupted training goes on from its last checkpoint and ends with the same
    weights as one that was not interrupted. While it goes on, its history grows in its
    folder of reports. Started by torchrun, several processes train together, each on a
    share of every minibatch.
    """
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_table
    from seqlm.rnn.building import save_network
    from seqlm.train import console as session
    from seqlm.train import history
    from seqlm.train.callbacks import open_board, put_back_on_error
    from seqlm.train.checkpoints import Checkpoint, code_hashes, key_of, run_lock, unpacked
    from seqlm.train.contention import begun_again_if_crowded
    from seqlm.train.ranks import local_device, local_threads, process_group
    from seqlm.train.settings import read_config
    from seqlm.train.trainer import Trainer
    from seqlm.vocab.corpus_building import load_split
    from seqlm.vocab.vocabulary import Vocab

    config = read_config(layout.config(run))
    torch.set_num_threads(local_threads(config.num_threads))
    device = local_device(resolve_device(config.device))
    vocab = Vocab.load(layout.vocab(config.token))
    train_ids, val_ids = (load_split(layout.corpus(config.token), split, mmap=True) for split in ("train", "val"))
    prefix = session.own_prefix(config, vocab, val_ids)
    with begun_again_if_crowded(click.echo), process_group(device) as ranks:
        board = open_board(tensorboard, run) if tensorboard and ranks.is_first else None
        trainer = Trainer(config, len(vocab), train_ids, val_ids, device, ranks)
        if ranks.is_first:
            processes = f", {ranks.size} processes" if ranks.size > 1 else ""
            click.echo(f"run {run} on {device}{processes}, {trainer.num_parameters:,} parameters")
            click.echo("\n".join(session.describe_plan(trainer)))
        data = [vocab.splits[split].sha256 for split in ("train", "val")]
        key = key_of(config.model_dump_json(), str(ranks.size), *data, *code_hashes())
        checkpoint = Checkpoint(layout.checkpoints, run, key)
        with run_lock(layout.checkpoints, run) if ranks.is_first else nullcontext():
            # On several machines each has checkpoints of its own: only those of the first count.
            if saved := ranks.broadcast(checkpoint.read() if ranks.is_first else None):
                trainer.restore(*unpacked(saved))
            if not ranks.is_first:
                trainer.run(session.CheckpointCallback(checkpoint, trainer))
                return
            if saved:
                click.echo(f"going on after epoch {trainer.epochs_trained:.4g}")
            reports = layout.reports("train", run)
            with put_back_on_error(reports / "history.csv", reports / "metrics.json"):
                session.train_to_end(trainer, checkpoint, vocab, prefix, reports, board)
                epoch, weights = trainer.chosen_weights()
                write_table(reports, "history", history.history_table(trainer))
                write_table(reports, "summary", history.summarise(trainer, epoch))
                write_table(reports, "metrics", history.headline(trainer))
                save_network(layout.run(run), run, config, len(vocab), weights)
            checkpoint.remove()


if __name__ == "__main__":
    main()
