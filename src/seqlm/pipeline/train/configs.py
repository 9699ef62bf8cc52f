"""The resolved settings of each run, which the stage configure writes and the others read."""

from pathlib import Path

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import find_files
from seqlm.core.stored import Stored
from seqlm.train.settings import RunConfig


def run_names(configs: Path) -> list[str]:
    """Return the names of the runs that have resolved settings, in order. Raises DataError if there
    is none."""
    names = [path.stem for path in find_files(configs, "*.json")]
    if not names:
        raise DataError(f"{configs}: holds no run's settings: run the configure stage")
    return names


class ConfigFile(Stored):
    """The content of a run's file."""

    version = 1
    advice = "run the configure stage again"

    config: RunConfig


def read_config(path: Path) -> RunConfig:
    """Return a run's settings as ``configure`` resolved them.

    Raises ParamsError if there is no such run, and DataError for a file that is broken, changed or
    that of another run.
    """
    if not path.exists():
        raise ParamsError(
            f"there is no run {path.stem!r}, only {', '.join(run_names(path.parent))}"
        )
    config = ConfigFile.read(path).config
    if config.run != path.stem:
        raise DataError(f"{path}: describes another run, {config.run!r}: {ConfigFile.advice}")
    return config


_OF_CHAPTER = {
    "token": "char",
    "activation": "tanh",
    "num_layers": 1,
    "embedding": "one_hot",
    "dropout": 0.0,
    "batch_size": 32,
    "num_steps": 35,
    "max_tokens": 10_000,
    "optimizer": "sgd",
    "lr": 1.0,
    "schedule": "constant",
    "grad_clip": 1.0,
    "truncation": "regular",
    "num_epochs": 500,
    "token_budget": None,
    "patience": None,
    "checkpoint": "last",
}
"""The settings of sections 8.5 and 8.6, with random or sequential sampling."""
_HIDDENS_OF_CHAPTER = {"scratch": 512, "rnn": 256}


def is_of_chapter(config: RunConfig) -> bool:
    """Return whether a run's settings are those of sections 8.5 and 8.6."""
    settings = _OF_CHAPTER | {"num_hiddens": _HIDDENS_OF_CHAPTER.get(config.model)}
    return all(getattr(config, name) == value for name, value in settings.items())
