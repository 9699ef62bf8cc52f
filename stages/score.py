"""Score a run or n-gram models on train, val and test; by hand also texts of your own."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from harness import STDOUT, NewFile, stage, warn
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, load
from seqlm.models.settings import SPACES, UNITS, By, Space
from seqlm.score.settings import ScoreParams
from seqlm.vocab.settings import KINDS


@stage()
@click.option("--model", "names", multiple=True, help="Score this run. With --text: any model; default: all runs.")
@click.option("--kind", type=click.Choice(KINDS), help="Score the n-gram models over this kind of token.")
@click.option(
    "--text",
    "texts",
    type=click.Path(path_type=Path),
    multiple=True,
    help="By hand: score this text, plain or .gz, or - for standard input; may be repeated. Stores nothing.",
)
@click.option(
    "--arpa", "arpas", type=click.Path(path_type=Path), multiple=True, help="With --text: score this ARPA model too."
)
@click.option(
    "--page", type=NewFile(), help="With one --text: file for its page. Default: surprisal.html, or none with --table."
)
@click.option(
    "--table",
    type=NewFile(allow_dash=True),
    help="With --text: write the surprisals in bits to this CSV file, or - for standard output.",
)
@click.option("--by", type=click.Choice(UNITS), default="word", help="With --table: the unit of a row.")
@click.option(
    "--space",
    type=click.Choice(SPACES),
    default="before",
    help="With --table: which word a space between two words counts towards.",
)
def main(layout: Layout, names: tuple[str, ...], kind: str | None, texts: tuple[Path, ...], **options: Any) -> None:
    """Score a run or n-gram models on train, val and test.

    With --text, print how well trained models predict texts of your own. Also write a page that shows how surprised
    they are by each character of one text, or a table of their surprisals.
    """
    if bool(names or texts or options["arpas"]) + (kind is not None) != 1:
        raise ParamsError("give exactly one of --model, --kind and --text")
    context = click.get_current_context()
    for name in ("by", "space"):
        if options["table"] is None and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise ParamsError(f"--{name} needs --table")
    if not texts and (needy := [name for name in ("arpas", "page", "table") if options[name]]):
        raise ParamsError(f"--{needy[0].removesuffix('s')} needs --text")
    if texts:
        _score_texts(layout, texts, names, **options)
    elif names:
        from seqlm.score.networks import score_run

        for run in names:
            score_run(layout, run, load(layout.params, "score", ScoreParams), click.echo)
    elif kind is not None:
        from seqlm.score.ngrams import score_kind

        score_kind(layout, kind, load(layout.params, "score", ScoreParams), click.echo)


def _score_texts(
    layout: Layout,
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    arpas: tuple[Path, ...],
    page: Path | None,
    table: Path | None,
    by: By,
    space: Space,
) -> None:
    from seqlm.core.files import csv_text, write_text
    from seqlm.models.arpa import open_arpa
    from seqlm.models.index import open_models
    from seqlm.preprocess.settings import PreprocessParams
    from seqlm.report.page import build_surprisal_page
    from seqlm.score import user_text
    from seqlm.train.settings import run_names

    if page is not None and len(paths) > 1:
        raise ParamsError("--page shows one text: give one --text")
    if page is None and table is None and len(paths) == 1:
        page = Path("surprisal.html")
    preprocess = load(layout.params, "preprocess", PreprocessParams)
    device: Device = load(layout.params, "device", Device)
    num_threads = load(layout.params, "num_threads", NumThreads)
    own = []
    if names or not arpas:
        opened = open_models(layout.root, device, num_threads)
        own = [opened[name] for name in names or run_names(layout.configs)]
    # As the corpus of the models was cleaned, whatever the setting says now. Nothing is known of that of an ARPA file.
    normalise = own[0].vocab.normalise if own else "none"
    preprocess = preprocess.model_copy(update={"normalise": normalise})
    models = [*own, *(open_arpa(path, warn) for path in arpas)]
    texts = [user_text.read_user_text(path, preprocess, sys.stdin.buffer) for path in paths]
    scored = user_text.score_texts(texts, models)
    say = partial(click.echo, err=table == STDOUT)
    for text in texts:
        remarks = [*text.remarks, *(user_text.remark_on_length(text.cleaned) if page else ())]
        lines = [*remarks, *(user_text.describe_score(*item) for item in scored[text.name].items())]
        say("\n".join([f"{text.name}:", *(f"  {line}" for line in lines)] if len(texts) > 1 else lines))
        if page is not None:
            content = user_text.page_content(text, scored[text.name])
            write_text(page, build_surprisal_page(Path(text.name).name, content, remarks))
            say(f"the page: {page}")
    if table is not None:
        rows = csv_text(user_text.surprisal_table(texts, scored, by, space))
        if table == STDOUT:
            click.echo(rows, nl=False)
        else:
            write_text(table, rows)
        where = {"before": "before which", "after": "after which"}[space]
        blanks = f", blanks added to the {by} {where} they come" if by == "word" else ""
        say(f"the table, bits by {by}{blanks}: {table}")


if __name__ == "__main__":
    main()
