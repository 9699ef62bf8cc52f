"""Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import existing_file, folder, stage
from seqlm.params.loading import NumThreads, Seed, load
from seqlm.params.sine import SineParams

if TYPE_CHECKING:
    import pandas as pd


@stage()
@click.option("--params", "params_path", type=existing_file(), default="params.yaml", help="Settings.")
@click.option("--models", type=folder(), default="data/models/sine", help="Where the network's weights go.")
@click.option("--reports", type=folder(), default="reports/sine", help="Where tables and figures go.")
def main(params_path: Path, models: Path, reports: Path) -> None:
    """Predict a noisy sine with a small network, one and more steps ahead (section 8.1)."""
    params = load(params_path, "sine", SineParams)
    seed, num_threads = load(params_path, "seed", Seed), load(params_path, "num_threads", NumThreads)

    import torch
    from safetensors.torch import save

    from seqlm.files import write_bytes, write_csv, write_json
    from seqlm.sine_study import study_sine

    torch.set_num_threads(num_threads)
    study = study_sine(params, seed)
    write_bytes(models / "mlp.safetensors", save(study.mlp.state_dict()))
    for name, frame in study.tables.items():
        write_csv(reports / f"{name}.csv", frame)
    write_json(reports / "metrics.json", study.metrics)
    _draw(study.tables, params, reports)
    click.echo(f"training loss by epoch: {' '.join(f'{loss:.3f}' for loss in study.metrics['loss'].values())}")


def _draw(tables: dict[str, "pd.DataFrame"], params: SineParams, reports: Path) -> None:
    from seqlm.figures.sine import error_figure, predictions_figure, series_figure
    from seqlm.figures.style import save_svg

    predictions = tables["predictions"]
    save_svg(series_figure(predictions["observed"].to_numpy()), reports / "series.svg")
    steps = {"one_step": "1-step", "multi_step": "multi-step"}
    save_svg(predictions_figure(predictions, steps, "One step, and on from its own predictions"), reports / "steps.svg")
    ahead = {f"ahead_{k}": f"{k}-step" for k in params.steps}
    save_svg(predictions_figure(predictions, ahead, "Predictions k steps ahead"), reports / "ahead.svg")
    save_svg(error_figure(tables["errors"], params.noise), reports / "errors.svg")


if __name__ == "__main__":
    main()
