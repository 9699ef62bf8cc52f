"""A disk that decays: after any bit of stored data has changed, results are the same or refused in one line."""

import random
from pathlib import Path

import numpy as np
import pytest

import seqlm
from seqlm.core.errors import SeqlmError
from seqlm.core.layout import Layout
from seqlm.pipeline.preprocess.splitting import require_splits
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import Scores, load_scores_folder
from seqlm.pipeline.train.configs import read_config
from seqlm.vocab.corpus import load_corpus
from seqlm.vocab.kinds import KINDS

TEXT = "the sea came in"
STORED = ("configs", "corpus", "models", "scores", "text")


def results(layout: Layout) -> list[object]:
    """Return all that stages and users read from stored data."""
    require_splits(layout.splits)
    found: list[object] = [Folds.load(layout.folds), read_config(layout.config("small"))]
    for kind in KINDS:
        corpus = load_corpus(layout.corpus(kind), kind)
        for split in corpus.splits.values():
            found += [split.texts(), np.asarray(split.ids).tolist()]
    for folder in (*map(layout.scores_of_ngrams, KINDS), layout.scores_of_run("small")):
        for scores in load_scores_folder(folder):
            found += [scores.info, {split: nll.tobytes() for split, nll in scores.nll.items()}, scores.metrics]
    models = seqlm.open(layout.root)
    names = [name for name in models if "dynamic" not in name or name == "small+dynamic"]
    return [*found, *((name, models[name].info, models[name].score(TEXT)) for name in names)]


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def outcome(layout: Layout, path: Path, expected: list[object], rng: random.Random) -> str:
    """Return what a flipped bit does, and undo it."""
    content = path.read_bytes()
    flip(path, rng)
    try:
        return "same" if results(layout) == expected else "another result"
    except SeqlmError as error:
        return "refused" if "\n" not in str(error) else "several lines"
    finally:
        path.write_bytes(content)


def stored_files(layout: Layout) -> list[Path]:
    files = [path for name in STORED for path in sorted((layout.root / "data" / name).rglob("*.*"))]
    return [path for path in files if path.is_file()]


def test_a_flipped_bit_of_any_kind_of_file_is_noticed(scored: tuple[Layout, dict[str, Scores]]) -> None:
    layout, _ = scored
    expected = results(layout)
    kinds = {path.name: path for path in stored_files(layout)}
    assert {"keys_3.npy", "counts_3.npy", "train.npy", "unknown_val.npy", "tokenizer.json", "vocab.json"} <= set(kinds)
    assert len({*kinds}) > 20
    found = {name: outcome(layout, path, expected, random.Random(0)) for name, path in kinds.items()}
    assert set(found.values()) == {"refused"}, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_changes_no_result(seed: int, scored: tuple[Layout, dict[str, Scores]]) -> None:
    layout, _ = scored
    rng, files, expected = random.Random(seed), stored_files(layout), results(layout)
    sizes = [path.stat().st_size for path in files]
    found = [outcome(layout, path, expected, rng) for path in rng.choices(files, sizes, k=200)]
    assert set(found) <= {"refused", "same"}
