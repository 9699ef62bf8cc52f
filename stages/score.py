"""Score a run or n-gram models on train, val and test; by hand also on a text of your own."""

from pathlib import Path

import click

from harness import existing_file, file, stage
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import Device, NumThreads, load
from seqlm.score.settings import ScoreParams
from seqlm.vocab.settings import KINDS


@stage(uses_torch=True)
@click.option("--model", "names", multiple=True, help="Score this run. With --text: any model; default: all runs.")
@click.option("--kind", type=click.Choice(KINDS), help="Score the n-gram models over this kind of token.")
@click.option("--word-to-char", is_flag=True, help="Score the n-gram model over words as a model over characters.")
@click.option("--text", type=existing_file(), help="By hand: score this text, plain or .gz; store nothing.")
@click.option("--page", type=file(), help="With --text: where its page goes. Default: surprisal.html.")
def main(
    layout: Layout,
    names: tuple[str, ...],
    kind: str | None,
    word_to_char: bool,
    text: Path | None,
    page: Path | None,
) -> None:
    """Score a run or n-gram models on train, val and test.

    With --text, print how well trained models predict a text of your own, and write a page that shows how surprised
    they are by each of its characters.
    """
    if (bool(names) or text is not None) + (kind is not None) + word_to_char != 1:
        raise ParamsError("give exactly one of --model, --kind, --word-to-char and --text")
    if page is not None and text is None:
        raise ParamsError("--page needs --text")
    if text is not None:
        _score_text(layout, text, names, page or Path("surprisal.html"))
    elif names:
        for run in names:
            _score_run(layout, run, load(layout.params, "score", ScoreParams))
    elif kind is not None:
        from seqlm.score.ngrams.scoring import score_kind

        score_kind(layout, kind, load(layout.params, "score", ScoreParams), click.echo)
    else:
        from seqlm.score.word_to_char.scoring import score_word_to_char

        score_word_to_char(layout, load(layout.params, "score", ScoreParams), click.echo)


def _score_run(layout: Layout, run: str, params: ScoreParams) -> None:
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_json
    from seqlm.score.metrics import headline
    from seqlm.score.networks.scoring import score_run
    from seqlm.score.store import save_scores
    from seqlm.train.runs import read_config

    config = read_config(layout.config(run))
    torch.set_num_threads(config.num_threads)
    scores = score_run(layout, config, resolve_device(config.device), params.dynamic, click.echo)
    metrics = save_scores(layout.scores_of_run(run), scores, click.echo)
    write_json(layout.reports("score", run, "metrics.json"), headline(metrics[run]))


def _score_text(layout: Layout, text: Path, names: tuple[str, ...], page: Path) -> None:
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_text
    from seqlm.download.settings import DownloadParams
    from seqlm.preprocess.settings import PreprocessParams
    from seqlm.report.page import build_surprisal_page
    from seqlm.score.user_text import describe_score, read_user_text, score_user_text

    torch.set_num_threads(load(layout.params, "num_threads", NumThreads))
    device, max_bytes = load(layout.params, "device", Device), load(layout.params, "download", DownloadParams).max_bytes
    own = read_user_text(text, load(layout.params, "preprocess", PreprocessParams), max_bytes)
    scores = score_user_text(layout, own.text, names, resolve_device(device))
    click.echo("\n".join([*own.remarks, *(describe_score(name, score) for name, score in scores.items())]))
    write_text(page, build_surprisal_page(text.name, scores, own.remarks))
    click.echo(f"the page: {page}")


if __name__ == "__main__":
    main()
