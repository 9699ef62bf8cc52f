"""Set every model against every other on train, val and test; by hand also on a text of your own."""

from pathlib import Path

import click

from harness import clear_stale_runs, existing_file, file, stage
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, Seed, load


@stage(uses_torch=True)
@click.option("--text", type=existing_file(), help="By hand: score this text, and nothing else.")
@click.option("--run", "names", multiple=True, help="With --text: a run or an n-gram model; default: all runs.")
@click.option("--page", type=file(), help="With --text: where its page goes; default: surprisal.html.")
def main(layout: Layout, text: Path | None, names: tuple[str, ...], page: Path | None) -> None:
    """Set every model against every other on train, val and test.

    With --text, print how well trained models predict a text of your own, and write a page
    that shows how surprised they are by each of its characters.
    """
    if text is not None:
        _score_text(layout, text, names, page or Path("surprisal.html"))
    elif names or page:
        raise ParamsError("--run and --page belong to --text: name the text")
    else:
        _evaluate(layout)


def _evaluate(layout: Layout) -> None:
    from seqlm.core.files import write_json, write_table
    from seqlm.core.progress import timed
    from seqlm.evaluate import tables
    from seqlm.evaluate.combining import read_scores
    from seqlm.evaluate.ranking import collect_measures, draw_models, leaders, rank_models
    from seqlm.evaluate.settings import EvaluateParams
    from seqlm.evaluate.table_text import describe_share, describe_shrunk, table_text
    from seqlm.score.heldout.splits import read_all_streams
    from seqlm.score.settings import ScoreParams
    from seqlm.train.runs import run_names, training_summaries

    params, seed = load(layout.params, "evaluate", EvaluateParams), load(layout.params, "seed", Seed)
    max_tokens, names = load(layout.params, "score", ScoreParams).max_tokens, run_names(layout.configs)
    with timed("scores read, best models mixed, all ranked", click.echo):
        streams = read_all_streams(layout, max_tokens)
        scores = read_scores(layout, names, streams, params.mixtures)
        measures = collect_measures(scores.all, streams)
        draws = draw_models(scores.all, streams, measures, seed)
        table = rank_models(scores.all, measures, draws)
        found = {"measures": measures, "table": table, "leaders": leaders(table, draws), "choices": scores.choices}
    found |= {"orders": tables.order_table(table), "history": tables.history_table(layout, names)}
    found |= {f"best/{family}": headline for family, headline in scores.headlines(measures).items()}
    diagnoses = tables.diagnostic_tables(layout, scores.of_characters(), streams["char"]["test"])
    for name, content in [*found.items(), *diagnoses]:
        write_table(layout.reports("evaluate"), name, content)
    write_json(layout.passages, tables.passages(layout, scores.all, streams, table["model"], params.passage_chars))
    clear_stale_runs(layout, names)
    click.echo(table_text(table, describe_share(measures), describe_shrunk(training_summaries(layout, names))))


def _score_text(layout: Layout, text: Path, names: tuple[str, ...], page: Path) -> None:
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_text
    from seqlm.preprocess.settings import PreprocessParams
    from seqlm.report.page import build_surprisal_page
    from seqlm.score.user_text import describe_score, score_user_text

    torch.set_num_threads(load(layout.params, "num_threads", NumThreads))
    device = resolve_device(load(layout.params, "device", Device))
    scores = score_user_text(layout, text, names, load(layout.params, "preprocess", PreprocessParams), device)
    click.echo("\n".join(describe_score(name, score) for name, score in scores.items()))
    write_text(page, build_surprisal_page(text.name, scores))
    click.echo(f"the page: {page}")


if __name__ == "__main__":
    main()
