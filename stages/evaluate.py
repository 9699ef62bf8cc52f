"""Compare all models on train, val and test."""

import environment  # noqa: F401

import click

from seqlm.core.layout import Layout
from seqlm.pipeline.harness import stage


@stage()
def main(layout: Layout) -> None:
    """Compare all models on train, val and test."""
    from seqlm.core.files import write_json, write_metrics, write_table
    from seqlm.pipeline.evaluate import tables
    from seqlm.pipeline.evaluate.columns import main_table
    from seqlm.pipeline.evaluate.mixtures import collect_scores, save_mixtures
    from seqlm.pipeline.evaluate.ranking import rank_models
    from seqlm.pipeline.score.heldout import Heldout
    from seqlm.pipeline.score.ngrams import Folds
    from seqlm.pipeline.train.configs import run_names
    from seqlm.vocab.kinds import KINDS

    runs = run_names(layout.configs)
    heldouts = {kind: Heldout(layout, kind) for kind in KINDS}
    texts = {kind: heldout.streams for kind, heldout in heldouts.items()}
    scores = collect_scores(layout, runs, texts)
    results = rank_models(scores, texts, Folds.load(layout.folds))
    diagnosed = tables.diagnosed(scores)
    found = {
        "metrics": {each.name: each.metrics for each in scores},
        "table": main_table(results),
        "choices": tables.choices(scores),
        "orders": tables.order_table(results),
        "history": tables.all_histories(layout, runs),
        "positions": tables.position_table(diagnosed),
        "classes": tables.class_table(diagnosed, heldouts["char"]),
    }
    for name, content in found.items():
        write_table(layout.reports("evaluate"), name, content)
    write_metrics(layout.reports("evaluate", "bits.json"), tables.headlines(scores, runs))
    save_mixtures(layout.mixtures, scores)
    write_json(layout.passages, tables.passages(results, heldouts))
    click.echo(f"the best of {len(results)} models on val: {results[0].label}")


if __name__ == "__main__":
    main()
