"""Score every model on train, val and test; by hand also a text of your own."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import existing_file, file, folder, stage
from seqlm.params.evaluate import EvaluateParams
from seqlm.params.loading import Device, NumThreads, Seed, load
from seqlm.params.preprocess import PreprocessParams

if TYPE_CHECKING:
    import torch

_MAX_SHOWN_CHARS = 20_000
"""Characters of a text of one's own that its page shows, so that it stays a page."""


@dataclass(frozen=True)
class Trained:
    """Where the models lie, and what they were made from."""

    configs: Path
    runs: Path
    ngrams: Path
    corpus: Path


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--configs", type=folder(), default="data/configs", help="The runs' resolved settings.")
@click.option("--runs", type=folder(), default="data/models/runs", help="The trained runs.")
@click.option("--ngrams", type=folder(), default="data/models/ngrams", help="The n-gram models.")
@click.option("--corpus", type=folder(), default="data/corpus", help="The encoded splits of both kinds.")
@click.option("--splits", type=folder(), default="data/text", help="The splits as text.")
@click.option("--histories", type=folder(), default="reports/train", help="The runs' histories.")
@click.option("--details", type=folder(), default="data/evaluation", help="Where the page's passages go.")
@click.option("--reports", type=folder(), default="reports/evaluate", help="Where tables and figures go.")
@click.option("--text", type=existing_file(), help="By hand: score this text, and nothing else.")
@click.option("--run", "names", multiple=True, help="With --text: a run or an n-gram model; default: all runs.")
@click.option("--page", type=file(), default="surprisal.html", help="With --text: where its page goes.")
def main(
    params_path: Path,
    configs: Path,
    runs: Path,
    ngrams: Path,
    corpus: Path,
    splits: Path,
    histories: Path,
    details: Path,
    reports: Path,
    text: Path | None,
    names: tuple[str, ...],
    page: Path,
) -> None:
    """Score every model on train, val and test, and set them against each other.

    With --text, print how well trained models predict a text of your own, and write a page
    that shows how surprised they are by each of its characters.
    """
    import torch

    from seqlm.devices import resolve_device

    torch.set_num_threads(load(params_path, "num_threads", NumThreads))
    device = resolve_device(load(params_path, "device", Device))
    trained = Trained(configs, runs, ngrams, corpus)
    if text is None:
        _evaluate(params_path, trained, device, splits, histories, details, reports)
    else:
        _score_text(load(params_path, "preprocess", PreprocessParams), trained, device, text, names, page)


def _evaluate(
    params_path: Path,
    trained: Trained,
    device: "torch.device",
    splits: Path,
    histories: Path,
    details: Path,
    reports: Path,
) -> None:
    from seqlm.evaluation_report import write_diagnostics, write_history, write_passages, write_scores
    from seqlm.ghosts import remove_ghosts, run_names
    from seqlm.params.train import read_config
    from seqlm.ranking import collect_measures, rank_models, table_text
    from seqlm.scoring import char_predictors, read_streams, score_extras, score_ngrams, score_runs
    from seqlm.vocab import Vocab

    params, seed = load(params_path, "evaluate", EvaluateParams), load(params_path, "seed", Seed)
    names = run_names(trained.configs)
    for ghost in remove_ghosts(names, trained.runs, histories):
        click.echo(f"removed {ghost}: no such run is left")
    streams = read_streams(trained.corpus, splits)
    sizes = {kind: len(Vocab.load(trained.corpus / kind / "vocab.json")) for kind in streams}
    counted = []
    for kind in streams:
        counted += score_ngrams(trained.ngrams / kind, kind, sizes[kind], streams[kind], click.echo)
    resolved = [read_config(trained.configs / f"{name}.json") for name in names]
    networks = score_runs(resolved, trained.runs, device, streams, click.echo)
    extras, choices = score_extras(counted, networks, trained.runs, device, streams, params.mixtures, params.dynamic)

    scored = [*counted, *networks, *extras]
    fitted = {config.run: config.max_tokens for config in resolved if config.max_tokens is not None}
    measures = collect_measures(scored, streams, fitted)
    table = rank_models(scored, streams, measures, seed)
    write_history(histories, names, reports)
    write_scores(table, measures, choices, reports)
    folders = {"runs": trained.runs, "ngrams": trained.ngrams / "char"}
    shown = char_predictors(counted, networks, folders, sizes["char"], device)
    write_diagnostics(scored, shown, trained.corpus, splits, reports)
    write_passages(scored, table, trained.corpus, splits, params.passage_chars, details)
    click.echo(table_text(table))


def _score_text(
    preprocess: PreprocessParams,
    trained: Trained,
    device: "torch.device",
    text: Path,
    names: tuple[str, ...],
    page: Path,
) -> None:
    from seqlm.files import write_text
    from seqlm.ghosts import run_names
    from seqlm.own_text import Models, read_own_text, score_own_text
    from seqlm.page.building import build_surprisal_page
    from seqlm.params.train import read_config

    cleaned = read_own_text(text, preprocess.normalise, preprocess.errors)
    kinds = {name: read_config(trained.configs / f"{name}.json").token for name in run_names(trained.configs)}
    models = Models(trained.runs, trained.ngrams, trained.corpus, kinds)
    scores = {name: score_own_text(cleaned, name, models, device, _MAX_SHOWN_CHARS) for name in names or kinds}
    for name, score in scores.items():
        perplexity, bits = (
            "infinite" if score[key] is None else f"{score[key]:.3f}" for key in ("perplexity", "bits_per_character")
        )
        click.echo(
            f"{name}: perplexity {perplexity} per {score['kind']}, {bits} bits per character, "
            f"{score['tokens']:,} tokens, {score['unknown_share']:.1%} of them unknown"
        )
    write_text(page, build_surprisal_page(text.name, scores))
    click.echo(f"the page: {page}")


if __name__ == "__main__":
    main()
