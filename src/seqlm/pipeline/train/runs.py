"""Trains one run of the pipeline, alone or in several processes."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict

from seqlm.core.devices import resolve_device
from seqlm.core.files import write_json, write_table
from seqlm.core.layout import Layout
from seqlm.models.info import network_info
from seqlm.networks.building import save_network
from seqlm.pipeline.train.configs import is_of_chapter, read_config
from seqlm.pipeline.train.interrupts import remove_checkpoints, run_lock, stop_at_ctrl_c
from seqlm.pipeline.train.results import describe_samples, sample_prefix, summarise
from seqlm.train.callbacks import (
    Checkpoint,
    checkpoint_key,
    describe_plan,
    periodic_saver,
    terminal,
)
from seqlm.train.history import history_table
from seqlm.train.ranks import process_group
from seqlm.train.settings import RunConfig
from seqlm.train.trainer import Trainer
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab


def train_run(layout: Layout, run: str, log: Callable[[str], object]) -> None:
    """Train a run, or resume it, and store its weights, samples, history and summary.

    If torchrun started several processes, all call this; the first one logs and writes. Raises
    ParamsError for an unknown run, DataError for a text that is too short, MachineError if another
    process trains the run, Interrupted after Ctrl-C, and DivergenceError.
    """
    config = read_config(layout.config(run))
    vocab = Vocab.load(layout.vocab(config.token))
    train_ids, val_ids = (
        load_split(layout.corpus(config.token), split, vocab) for split in ("train", "val")
    )
    prefix = sample_prefix(config, vocab, train_ids, val_ids)
    prefix_ids = vocab.encode(vocab.tokenize(prefix)).tolist()
    device = resolve_device(config.device)
    folder = layout.checkpoints / run
    with process_group(device) as ranks:
        is_first = ranks.rank == 0
        log = log if is_first else lambda _: None
        trainer = Trainer(
            _for_one_process(config),
            len(vocab),
            train_ids,
            val_ids,
            device,
            ranks,
            prefix_ids if is_first else (),
        )
        processes = f", {ranks.size} processes" if ranks.size > 1 else ""
        parameters = f"{trainer.network.num_parameters:,} parameters"
        log(f"{run}: {config.describe()}, {parameters}, on {device}{processes}")
        log(describe_plan(trainer.plan))
        checkpoint = Checkpoint(folder / "checkpoint", checkpoint_key(config, vocab, ranks.size))
        with run_lock(folder) if is_first else nullcontext():
            if checkpoint.restore(trainer):
                log(f"resuming after epoch {trainer.progress.epoch:.4g}")
            elif checkpoint.path.exists():
                log(f"{run}: starts anew: its settings, data or code have changed")
            terminal_of_first = terminal(trainer, vocab, is_hidden=None if is_first else True)
            with terminal_of_first as show, stop_at_ctrl_c(checkpoint) as stop:
                trainer.train(show, stop, periodic_saver(checkpoint))
            if is_first:
                _write(layout, config, trainer, vocab, prefix)
                remove_checkpoints(folder)


def _for_one_process(config: RunConfig) -> RunConfig:
    """Divide the threads among the processes on this machine."""
    num_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    num_threads = max(config.num_threads // num_processes, 1)
    return config.model_copy(update={"num_threads": num_threads})


def _write(layout: Layout, config: RunConfig, trainer: Trainer, vocab: Vocab, prefix: str) -> None:
    run, (_, weights) = config.run, trainer.chosen_weights()
    info = asdict(network_info(config, vocab)) | {"as_in_chapter": is_of_chapter(config)}
    defaults = config.model_dump(include={"device", "num_threads"})
    save_network(layout.run(run), run, config, vocab.key, weights, info, defaults)
    samples = describe_samples(trainer.progress.samples, vocab, prefix)
    write_json(layout.samples_of_run(run), samples)
    reports = layout.reports("train", run)
    write_table(reports, "history", history_table(run, trainer.progress.history))
    write_table(reports, "summary", summarise(trainer))
