"""Continue prefixes with every model."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import existing_file, folder, stage
from seqlm.params.generate import GenerateParams
from seqlm.params.loading import Device, NumThreads, Seed, load

if TYPE_CHECKING:
    import torch

    from seqlm.samples import Sample
    from seqlm.writers import Writer


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--configs", type=folder(), default="data/configs", help="The runs' resolved settings.")
@click.option("--runs", type=folder(), default="data/models/runs", help="The trained runs.")
@click.option("--ngrams", type=folder(), default="data/models/ngrams", help="The n-gram models.")
@click.option("--corpus", type=folder(), default="data/corpus", help="The vocabularies and the training text.")
@click.option("--reports", type=folder(), default="reports/generate", help="Where samples.md goes.")
@click.option("--prefix", multiple=True, help="By hand: continue this and print; may be given again.")
@click.option("--model", "only", multiple=True, help="By hand: with this model only.")
@click.option("--temperature", type=click.FloatRange(0, 100), multiple=True, help="By hand: in place of the settings.")
@click.option("--num-preds", type=click.IntRange(1, 100_000), help="By hand: in place of the settings.")
@click.option("--seed", "own_seed", type=click.IntRange(0, 2**32 - 1), help="By hand: in place of the settings.")
@click.option("--on-unknown", type=click.Choice(["error", "unk"]), help="A token that the vocabulary lacks.")
def main(
    params_path: Path,
    configs: Path,
    runs: Path,
    ngrams: Path,
    corpus: Path,
    reports: Path,
    prefix: tuple[str, ...],
    only: tuple[str, ...],
    temperature: tuple[float, ...],
    num_preds: int | None,
    own_seed: int | None,
    on_unknown: str | None,
) -> None:
    """Continue prefixes with every model.

    With --prefix, --model or --temperature the continuations are printed and nothing is written.
    """
    params = load(params_path, "generate", GenerateParams)
    seed, device_name = load(params_path, "seed", Seed), load(params_path, "device", Device)
    num_threads = load(params_path, "num_threads", NumThreads)

    import torch

    from seqlm.devices import resolve_device
    from seqlm.errors import ParamsError
    from seqlm.generation import Choice
    from seqlm.samples import describe

    torch.set_num_threads(num_threads)
    writers = _writers(configs, runs, ngrams, corpus, resolve_device(device_name))
    if missing := set(only) - {writer.name for writer in writers}:
        names = ", ".join(writer.name for writer in writers)
        raise ParamsError(f"--model {min(missing)}: no such model: choose from {names}")
    by_hand = bool(prefix or only or temperature)
    # By default a prefix that a vocabulary lacks is continued from <unk>: any corpus must get its samples.
    unknown = on_unknown or ("error" if by_hand else "unk")
    chosen_seed = seed if own_seed is None else own_seed
    samples = []
    for writer in writers:
        if only and writer.name not in only:
            continue
        source = _training_text(corpus, writer)
        prefixes = list(prefix) or params.prefixes
        for heat in temperature or params.temperatures:
            choice = Choice(heat, params.top_k, params.top_p)
            texts = writer.write(prefixes, num_preds or params.num_preds, choice, chosen_seed, unknown)
            samples += [describe(writer.name, p, heat, t, source) for p, t in zip(prefixes, texts, strict=True)]
    if by_hand:
        for sample in samples:
            click.echo(f"{sample.model}, temperature {sample.temperature:g}: {sample.prefix}{sample.text}")
    else:
        _write(samples, reports)


def _write(samples: "list[Sample]", reports: Path) -> None:
    from dataclasses import asdict

    from seqlm.files import write_json, write_text
    from seqlm.samples import samples_markdown

    write_text(reports / "samples.md", samples_markdown(samples))
    write_json(reports / "samples.json", [asdict(sample) for sample in samples])
    click.echo(f"{len(samples)} samples")


def _writers(configs: Path, runs: Path, ngrams: Path, corpus: Path, device: "torch.device") -> "list[Writer]":
    from seqlm.ghosts import run_names
    from seqlm.params.train import read_config
    from seqlm.vocab import Vocab
    from seqlm.writers import counting_writer, network_writer, strongest_ngrams

    vocabs = {kind: Vocab.load(corpus / kind / "vocab.json") for kind in ("char", "word")}
    found = []
    for name in run_names(configs):
        config = read_config(configs / f"{name}.json")
        found.append(network_writer(config, runs / name, vocabs[config.token], device))
    for kind, vocab in vocabs.items():
        found += [counting_writer(kind, n, ngrams / kind, vocab) for n in strongest_ngrams(ngrams / kind, vocab)]
    return found


def _training_text(corpus: Path, writer: "Writer") -> str:
    from seqlm.vocab import load_split

    vocab = writer.vocab
    return vocab.join(vocab.decode(load_split(corpus / vocab.kind, "train")))


if __name__ == "__main__":
    main()
