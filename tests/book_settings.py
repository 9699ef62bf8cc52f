"""The settings of the chapter, with which the pipeline meets the book's values."""

from typing import Any

from seqlm.configure.settings import resolve_runs

# The chapter's values, by the dotted names of settings.
SETTINGS: dict[str, Any] = {
    "seed": 0,
    "download.corpus": "time_machine",
    "preprocess.normalise": "letters",
    "preprocess.split.train": 0.8,
    "vocab.line_separator": "auto",
    "vocab.char.min_freq": 0,
    "sine.num_points": 1000,
    "sine.frequency": 0.01,
    "sine.noise": 0.2,
    "sine.tau": 4,
    "sine.num_train": 600,
    "sine.num_hiddens": 10,
    "sine.lr": 0.01,
    "sine.num_epochs": 5,
    "sine.batch_size": 16,
}
_OF_ALL = {
    "seed": 0, "activation": "tanh", "num_layers": 1, "embedding": "one_hot", "dropout": 0.0,
    "carry_state": None, "batch_size": 32, "num_steps": 35, "max_tokens": 10_000, "optimizer": "sgd", "lr": 1.0,
    "schedule": "constant", "grad_clip": 1.0, "truncation": "regular", "num_epochs": 500,
}  # fmt: skip
RUNS: dict[str, dict[str, Any]] = {
    "scratch-random": {"token": "char", "model": "scratch", "num_hiddens": 512, "sampling": "random"},
    "scratch-sequential": {"token": "char", "model": "scratch", "num_hiddens": 512, "sampling": "sequential"},
    "concise-random": {"token": "char", "model": "rnn", "num_hiddens": 256, "sampling": "random"},
    "concise-sequential": {"token": "char", "model": "rnn", "num_hiddens": 256, "sampling": "sequential"},
}


def differences(params: dict[str, Any]) -> list[str]:
    """Return the names of the settings that differ from the chapter's; higher orders of n-grams do not count."""
    found = []
    for name, value in SETTINGS.items():
        here: Any = params
        for key in name.split("."):
            here = here[key]
        found += [name] if here != value else []
    if params["ngrams"]["max_order"]["word"] < 3:
        found.append("ngrams.max_order.word")
    runs = resolve_runs(params, source="params.yaml")
    for run, own in RUNS.items():
        if run not in runs:
            found.append(f"runs.{run}")
            continue
        resolved = runs[run].model_dump()
        found += [f"runs.{run}.{key}" for key, value in {**_OF_ALL, **own}.items() if resolved[key] != value]
    return found
