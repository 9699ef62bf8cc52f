"""Runs small enough for a test to train, and a folder that holds one."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from default_params import PARAMS_FILE
from encoded_corpora import build, write_splits
from seqlm.core.layout import Layout
from seqlm.core.settings import read_params
from seqlm.core.stored import write_array, write_checksummed
from seqlm.models.info import describe_ngrams, network_info
from seqlm.networks.building import build_network, save_network
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.registry import build_models, save_models
from seqlm.pipeline.configure.settings import resolve_runs
from seqlm.pipeline.train.configs import ConfigFile
from seqlm.train.settings import RunConfig
from seqlm.vocab.corpus import load_split
from seqlm.vocab.kinds import KINDS
from seqlm.vocab.vocabulary import Vocab

SMALL = {
    "token": "char", "num_hiddens": 8, "num_epochs": 4, "batch_size": 4, "num_steps": 5, "max_tokens": None,
    "eval_every": 1,
}  # fmt: skip
PARAMS = read_params(PARAMS_FILE)
LINES = "the sea came in\nand the sea went out\n"


def config(run: str = "x", seed: int = 0, **changes: Any) -> RunConfig:
    values = PARAMS | {"seed": seed, "runs": {run: SMALL | changes}}
    return resolve_runs(values, source="params.yaml")[run]


def change_stored(path: Path, change: Callable[[Any], object]) -> None:
    """Change a stored description and its checksum, as another version or another person would."""
    value = json.loads(path.read_text())
    value.pop("checksum", None)
    change(value)
    write_checksummed(path, value)


def ngram_settings(*epsilons: float) -> dict[str, Mapping[str, Any]]:
    """Return the settings of all smoothing methods, with these epsilons for Laplace."""
    laplace = {"epsilons": list(epsilons), "chosen_on_val": True}
    return {"uniform": {}, "laplace": laplace, "kneser-ney": {"unknown": "good_turing"}}


def ngram_models(kind: str = "") -> list[str]:
    """Return the names of the models of all smoothing methods with orders up to 3."""
    names = build_models(count_ngrams(np.zeros(3, np.int64), 2, 3), ngram_settings(1.0, 1.0, 1.0))
    return [f"{kind}-{name}" if kind else name for name in names]


def write_models(folder: Path, text: str = LINES * 20) -> Layout:
    """Fill a folder with an untrained run ``small`` and n-gram models up to order 3 of all kinds."""
    shutil.copytree(_models(text).name, folder, dirs_exist_ok=True)
    return Layout(folder)


@cache
def _models(text: str) -> tempfile.TemporaryDirectory[str]:
    """Return the folder that is copied: making it takes far longer."""
    folder = tempfile.TemporaryDirectory()
    layout = Layout(Path(folder.name))
    # Splits that disagree, so that a test fails if one is taken for another.
    lines = text.splitlines(keepends=True)
    part = "".join(lines[len(lines) // 4 :])
    texts = write_splits(layout.splits, text, text + part, part)
    for kind in reversed(KINDS):  # the run is one over characters
        vocab = build(texts, layout.corpus(kind), kind, " ")
        counts = count_ngrams(load_split(layout.corpus(kind), "train"), len(vocab), 3)
        save_ngrams(layout, counts, vocab)
    write_run(layout, "small")
    return folder


def save_ngrams(layout: Layout, counts: NgramCounts, vocab: Vocab) -> None:
    """Store n-gram models up to order 3 as the stage ``ngrams`` does."""
    settings = ngram_settings(1.0, 1.0, 1.0)
    infos = describe_ngrams(build_models(counts, settings).values(), vocab)
    save_models(layout.ngrams(vocab.kind), counts, settings, vocab.key, map(asdict, infos))


Change = Callable[[np.ndarray], np.ndarray]


def write_run(layout: Layout, run: str, change: Change = lambda weight: weight, **changes: Any) -> None:
    """Write the settings and the weights of an untrained run as the stage ``train`` does; each weight is changed."""
    settings = config(run, **changes)
    ConfigFile(config=settings).write(layout.config(run))
    vocab = Vocab.load(layout.vocab(settings.token))
    weights = build_network(settings, len(vocab), settings.seed).weight_copies()
    weights = {name: change(weight) for name, weight in weights.items()}
    info, defaults = asdict(network_info(settings, vocab)), {"device": settings.device, "num_threads": 1}
    save_network(layout.run(run), run, settings, vocab.key, weights, info, defaults)


def replace_split(folder: Path, split: str, change: Change) -> None:
    """Change the ids of an encoded split, as if its text were another one."""
    vocab = Vocab.load(folder / "vocab.json")
    digest = write_array(folder / f"{split}.npy", change(load_split(folder, split, vocab)))
    splits = vocab.splits | {split: replace(vocab.splits[split], sha256=digest)}
    replace(vocab, splits=splits).save(folder / "vocab.json")
