"""Compare all models on the training, validation and test sets."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage()
def main(layout: Layout) -> None:
    """Compare all models on the training, validation and test sets."""
    from seqlm.core.files import write_json, write_metrics, write_table
    from seqlm.pipeline.evaluate import tables
    from seqlm.pipeline.evaluate.main_table import main_table
    from seqlm.pipeline.evaluate.mixtures import collect_scores, save_mixtures
    from seqlm.pipeline.score.heldout import Heldout
    from seqlm.pipeline.score.ngrams import Folds
    from seqlm.pipeline.train.configs import run_names
    from seqlm.vocab.kinds import KINDS

    runs = run_names(layout.configs)
    heldouts = {kind: Heldout(layout, kind) for kind in KINDS}
    texts = {kind: heldout.streams for kind, heldout in heldouts.items()}
    scores = collect_scores(layout, runs, texts)
    table = main_table(scores, texts, Folds.load(layout.folds))
    diagnosed = tables.diagnosed(scores)
    reports = {
        "metrics": {score.name: score.metrics for score in scores},
        "table": table,
        "choices": tables.choices(scores),
        "orders": tables.order_table(table),
        "history": tables.all_histories(layout, runs),
        "positions": tables.position_table(diagnosed),
        "classes": tables.class_table(diagnosed, heldouts["char"]),
    }
    for name, report in reports.items():
        write_table(layout.reports("evaluate"), name, report)
    write_metrics(layout.reports("evaluate", "bits.json"), tables.headlines(scores, runs))
    save_mixtures(layout.mixtures, scores)
    write_json(layout.passages, tables.passages(scores, heldouts))
    click.echo(f"the best of {len(scores)} models on the validation set: {table['label'][0]}")


if __name__ == "__main__":
    main()
