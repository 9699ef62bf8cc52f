"""Settings of a training run for those who name none, by architecture.

Those of ``lstm`` are the run ``lstm`` of ``params.yaml``, those of ``transformer`` its preset.
"""

from typing import Any

from seqlm.core.threads import default_threads

_COMMON: dict[str, Any] = {
    "activation": "tanh",
    "num_hiddens": 256,
    "num_layers": 2,
    "num_heads": 1,
    "num_steps": 32,
    "embedding": "learned",
    "embedding_size": 64,
    "tie_weights": False,
    "dropout": 0.25,
    "engine": "auto",
    "sampling": "sequential",
    "batch_size": 32,
    "max_tokens": None,
    "optimizer": "adamw",
    "lr": 0.006,
    "schedule": "cosine",
    "warmup_share": 0.1,
    "weight_decay": 0.01,
    "grad_clip": 1.0,
    "truncation": "regular",
    "keep_probability": 0.9,
    "num_epochs": 20,
    "token_budget": 3_500_000,
    "eval_every": 1,
    "eval_tokens": 200_000,
    "patience": 5,
    "checkpoint": "best",
    "sample_every": 0,
    "sample_prefix": "auto",
    "device": "cpu",
    "seed": 0,
}
_ONE_HOT = {"embedding": "one_hot", "embedding_size": None}
DEFAULTS: dict[str, dict[str, Any]] = {
    "lstm": {},
    "gru": {},
    "rnn": {"lr": 0.003},
    "scratch": {"num_hiddens": 512, "num_layers": 1, "dropout": 0.0, "lr": 0.003, **_ONE_HOT},
    "transformer": {
        "num_hiddens": 128,
        "num_layers": 3,
        "num_heads": 4,
        "num_steps": 64,
        "embedding_size": None,
        "dropout": 0.1,
        "sampling": "random",
        "batch_size": 8,
        "lr": 0.004,
    },
}
"""What each architecture changes of the common settings."""

_SMALL_TEXT_TOKENS, _MAX_EPOCHS = 2_000_000, 60
"""A short text is read more often: up to this many tokens in all, in this many epochs."""
_MIN_MINIBATCHES = 10
"""In each epoch: a short text has smaller minibatches."""


def default_settings(architecture: str, num_tokens: int | None = None) -> dict[str, Any]:
    """All settings of a run but its name and its kind of token, for a text of ``num_tokens``."""
    settings = _COMMON | DEFAULTS[architecture] | {"model": architecture}
    settings["num_threads"] = default_threads()
    if num_tokens is not None:
        epochs = -(-_SMALL_TEXT_TOKENS // max(num_tokens, 1))
        settings["num_epochs"] = max(settings["num_epochs"], min(epochs, _MAX_EPOCHS))
        rows = num_tokens // (settings["num_steps"] * _MIN_MINIBATCHES)
        settings["batch_size"] = max(min(settings["batch_size"], rows), 1)
    return settings
