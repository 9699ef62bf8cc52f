"""Score one trained run, or the n-gram models over one kind of token, on train, val and test."""

import click

from harness import stage
from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import load
from seqlm.vocab.settings import KINDS


@stage(uses_torch=True)
@click.option("--run", "run", help="A run's name.")
@click.option("--kind", type=click.Choice(KINDS), help="A kind of token, for the n-gram models over it.")
@click.option("--by-characters", is_flag=True, help="Score the n-gram model over words as a model over characters.")
def main(layout: Layout, run: str | None, kind: str | None, by_characters: bool) -> None:
    """Score one trained run, or n-gram models, on train, val and test."""
    if (run is not None) + (kind is not None) + by_characters != 1:
        raise ParamsError("give --run, --kind or --by-characters, one of them")
    if run is not None:
        _score_run(layout, run)
    else:
        _score_ngrams(layout, kind)


def _score_run(layout: Layout, run: str) -> None:
    import torch

    from seqlm.core.devices import resolve_device
    from seqlm.core.files import write_json
    from seqlm.core.progress import timed
    from seqlm.rnn.building import load_network
    from seqlm.score.heldout.splits import read_streams
    from seqlm.score.settings import ScoreParams
    from seqlm.score.store import headline, save_score, shown_bits
    from seqlm.score.surprisals import score_dynamically, score_network
    from seqlm.train.settings import read_config

    params, config = load(layout.params, "score", ScoreParams), read_config(layout.config(run))
    torch.set_num_threads(config.num_threads)
    network = load_network(layout.run(run), run, resolve_device(config.device))
    streams = read_streams(layout, config.token, params.max_tokens, config.max_tokens)
    with timed(f"{run} scored", click.echo):
        score = score_network(run, config.token, network, streams)
    save_score(layout.scores_of_run(run), score)
    measures = score.measures(streams)
    write_json(layout.reports("score", run, "metrics.json"), headline(measures))
    click.echo(f"{run}: {shown_bits(measures['val'])} on val")
    if params.dynamic is not None and config.max_tokens is None:
        adapted = score_dynamically(run, config.token, network, streams, params.dynamic, click.echo)
        save_score(layout.dynamic_scores_of_run(run), adapted)


def _score_ngrams(layout: Layout, kind: str | None) -> None:
    """Score the n-gram models over a kind of token; without one, that over words as a model over characters."""
    from seqlm.score.settings import ScoreParams

    params = load(layout.params, "score", ScoreParams)
    if kind is None:
        from seqlm.score.word_to_char.scoring import score_by_characters

        score_by_characters(layout, params, click.echo)
    else:
        from seqlm.score.surprisals import score_kind

        score_kind(layout, kind, params, click.echo)


if __name__ == "__main__":
    main()
