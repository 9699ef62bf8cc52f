"""Settings of runs so small that a test can train them."""

from seqlm.configure.runs import resolve_runs
from seqlm.core.settings import read_params
from seqlm.train.settings import RunConfig
from smoke import ROOT

SMALL = {"num_hiddens": 8, "num_epochs": 4, "batch_size": 4, "num_steps": 5, "max_tokens": None, "eval_every": 1}
PARAMS = read_params(ROOT / "params.yaml") | {"num_threads": 1}


def config(run: str = "x", seed: int = 0, **changes: object) -> RunConfig:
    """Return the resolved settings of a small run."""
    values = PARAMS | {"seed": seed, "runs": {run: SMALL | changes}}
    return resolve_runs(values, source="params.yaml")[run]
