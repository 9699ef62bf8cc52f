"""Measure how far gradients reach and what truncation does to them (section 8.7)."""

from pathlib import Path

import click

from harness import existing_file, folder, stage
from seqlm.params.gradients import GradientsParams
from seqlm.params.loading import Seed, load


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--configs", type=folder(), default="data/configs", help="The runs' resolved settings.")
@click.option("--corpus", type=folder(), default="data/corpus", help="The encoded splits of both kinds.")
@click.option("--histories", type=folder(), default="reports/train", help="The runs' histories.")
@click.option("--reports", type=folder(), default="reports/gradients", help="Where tables and figures go.")
def main(params_path: Path, configs: Path, corpus: Path, histories: Path, reports: Path) -> None:
    """Measure how far gradients reach and what truncation does to them (section 8.7)."""
    params = load(params_path, "gradients", GradientsParams)
    seed = load(params_path, "seed", Seed)

    import pandas as pd
    import torch

    from seqlm.figures import gradients as figures
    from seqlm.figures.style import save_svg
    from seqlm.figures.truncation import cost_figure, trained_figure, truncation_figure
    from seqlm.files import read_csv, write_csv, write_json
    from seqlm.ghosts import run_names
    from seqlm.gradients.study import study_gradients
    from seqlm.vocab import Vocab, load_split

    torch.set_num_threads(1)  # two threads on networks as small as these are slower than one
    kind = corpus / params.token
    vocab, ids = Vocab.load(kind / "vocab.json"), load_split(kind, "train")
    study = study_gradients(params, ids, load_split(kind, "val"), len(vocab), seed)
    history = pd.concat([read_csv(histories / run / "history.csv") for run in run_names(configs)], ignore_index=True)
    tables = study.tables | {"clipping": history[["run", "epoch", "grad_norm", "grad_norm_max", "clipped_share"]]}
    for name, table in tables.items():
        write_csv(reports / f"{name}.csv", table)
    write_json(reports / "metrics.json", study.metrics)

    drawn = {
        "strategies": figures.strategies_figure(vocab.join(vocab.decode(ids[:26]))[:26]),
        "graph": figures.graph_figure(vocab.decode(ids[:4])),
        "reach": figures.reach_figure(tables["reach"]),
        "spectrum": figures.spectrum_figure(tables["spectrum"], tables["radius"]),
        "truncation": truncation_figure(tables["truncation"], tables["convergence"]),
        "trained": trained_figure(tables["trained"]),
        "cost": cost_figure(tables["cost"]),
        "information": figures.information_figure(tables["information"], tables["reach"]),
        "alignment": figures.alignment_figure(tables["alignment"]),
        "clipping": figures.clipping_figure(history),
        "unclipped": figures.unclipped_figure(tables["unclipped"]),
    }
    for name, figure in drawn.items():
        save_svg(figure, reports / f"{name}.svg")
    click.echo(f"spectral radius of W_hh: {study.metrics['spectral_radius']}")


if __name__ == "__main__":
    main()
