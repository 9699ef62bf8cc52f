"""Score a run or n-gram models on train, val and test; by hand also a text of your own."""

import environment  # noqa: F401

import sys
from pathlib import Path

import click

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, load
from seqlm.pipeline.harness import NEW_FILE, stage
from seqlm.pipeline.score.settings import ScoreParams
from seqlm.vocab.kinds import KINDS, Kind


@stage()
@click.option(
    "--model",
    "names",
    multiple=True,
    help="Score this run. With --text: any model; default: all runs.",
)
@click.option(
    "--kind", type=click.Choice(KINDS), help="Score the n-gram models over this kind of token."
)
@click.option(
    "--text",
    type=click.Path(path_type=Path),
    help="By hand: score this text, plain or .gz, or - for stdin.",
)
@click.option(
    "--page", type=NEW_FILE, help="With --text: file for its page. Default: surprisal.html."
)
def main(
    layout: Layout, names: tuple[str, ...], kind: Kind | None, text: Path | None, page: Path | None
) -> None:
    """Score a run or n-gram models on train, val and test.

    With --text, print how well trained models predict a text of your own, and write a page that
    shows how surprised they are by each character.
    """
    if (text is not None or bool(names)) + (kind is not None) != 1:
        raise ParamsError("give --kind alone, or --model, --text or both")
    if page is not None and text is None:
        raise ParamsError("--page needs --text")
    if text is not None:
        _score_text(layout, text, names, page or Path("surprisal.html"))
    elif names:
        from seqlm.pipeline.score.networks import score_run

        for run in names:
            score_run(layout, run, load(layout.params, "score", ScoreParams), click.echo)
    elif kind is not None:
        from seqlm.pipeline.score.ngrams import score_kind

        score_kind(layout, kind, load(layout.params, "score", ScoreParams), click.echo)


def _score_text(layout: Layout, path: Path, names: tuple[str, ...], page: Path) -> None:
    from seqlm.core.files import write_text
    from seqlm.models.index import open_models
    from seqlm.pipeline.report.page import build_surprisal_page
    from seqlm.pipeline.score.shown_text import describe_score, page_content, read_user_text

    device: Device = load(layout.params, "device", Device)  # type: ignore[arg-type]
    opened = open_models(layout.root, device, load(layout.params, "num_threads", NumThreads))
    models = [opened[name] for name in names or opened.networks]
    # Cleaned as the models' corpus was, whatever the setting says now.
    text = read_user_text(path, models[0].vocab.normalise, sys.stdin.buffer)
    scored = {model.name: model.score_text(text.original) for model in models}
    lines = [*text.remarks, *(describe_score(*item) for item in scored.items())]
    content = {name: page_content(found) for name, found in scored.items()}
    write_text(page, build_surprisal_page(Path(text.name).name, content, text.remarks))
    click.echo("\n".join([*lines, f"the page: {page}"]))


if __name__ == "__main__":
    main()
