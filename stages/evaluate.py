"""Score every model on train, val and test."""

from pathlib import Path

import click

from harness import existing_file, folder, stage
from seqlm.params.evaluate import EvaluateParams
from seqlm.params.loading import Device, NumThreads, Seed, load


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--configs", type=folder(), default="data/configs", help="The runs' resolved settings.")
@click.option("--runs", type=folder(), default="data/models/runs", help="The trained runs.")
@click.option("--ngrams", type=folder(), default="data/models/ngrams", help="The n-gram models.")
@click.option("--corpus", type=folder(), default="data/corpus", help="The encoded splits of both kinds.")
@click.option("--text", type=folder(), default="data/text", help="The splits as text.")
@click.option("--histories", type=folder(), default="reports/train", help="The runs' histories.")
@click.option("--details", type=folder(), default="data/evaluation", help="Where the page's passages go.")
@click.option("--reports", type=folder(), default="reports/evaluate", help="Where tables and figures go.")
def main(
    params_path: Path,
    configs: Path,
    runs: Path,
    ngrams: Path,
    corpus: Path,
    text: Path,
    histories: Path,
    details: Path,
    reports: Path,
) -> None:
    """Score every model on train, val and test, and set them against each other."""
    params = load(params_path, "evaluate", EvaluateParams)
    seed, device_name = load(params_path, "seed", Seed), load(params_path, "device", Device)
    num_threads = load(params_path, "num_threads", NumThreads)

    import torch

    from seqlm.devices import resolve_device
    from seqlm.evaluation_report import write_history, write_passages, write_scores
    from seqlm.ghosts import remove_ghosts, run_names
    from seqlm.params.train import read_config
    from seqlm.ranking import collect_measures, rank_models, table_text
    from seqlm.scoring import read_streams, score_extras, score_ngrams, score_runs
    from seqlm.vocab import Vocab

    torch.set_num_threads(num_threads)
    device = resolve_device(device_name)
    names = run_names(configs)
    for ghost in remove_ghosts(names, runs, histories):
        click.echo(f"removed {ghost}: no such run is left")
    streams = read_streams(corpus, text)
    counted = []
    for kind in streams:
        counted += score_ngrams(ngrams / kind, kind, len(Vocab.load(corpus / kind / "vocab.json")), streams[kind])
    resolved = [read_config(configs / f"{name}.json") for name in names]
    trained = score_runs(resolved, runs, device, streams, click.echo)
    extras, choices = score_extras(counted, trained, runs, device, streams, params.mixtures, params.dynamic)

    scored = [*counted, *trained, *extras]
    fitted = {config.run: config.max_tokens for config in resolved if config.max_tokens is not None}
    measures = collect_measures(scored, streams, fitted)
    table = rank_models(scored, streams, measures, seed)
    write_history(histories, names, reports)
    write_scores(table, measures, choices, reports)
    write_passages(scored, table, corpus, text, params.passage_chars, details)
    click.echo(table_text(table))


if __name__ == "__main__":
    main()
