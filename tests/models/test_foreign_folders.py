"""A folder in which something changed is used or refused: one line, soon, without a traceback.

A disk decays, and a folder may come from somebody who computes checksums too.
"""

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import seqlm
from seqlm.core.errors import SeqlmError
from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.models.index import Models
from seqlm.models.saving import save
from seqlm.pipeline.preprocess.splitting import require_splits
from seqlm.pipeline.score.ngrams import Folds
from seqlm.pipeline.score.scores import load_scores_folder
from seqlm.pipeline.train.configs import read_config
from seqlm.vocab.corpus import load_corpus
from seqlm.vocab.kinds import KINDS
from small_runs import change_stored

TEXT = "the sea came in"
NAMES = ["char-kneser-ney-3+char-by-word-kneser-ney-3", "small+dynamic", "char-laplace-2", "char-kneser-ney-4+dynamic"]
CORPUS, NGRAMS, RUN = "data/corpus/char", "data/models/ngrams/char", "data/models/runs/small"
VOCAB, COUNTS = f"{CORPUS}/vocab.json", f"{NGRAMS}/models.json"
MODEL, WEIGHTS = f"{RUN}/model.json", f"{RUN}/weights.safetensors"
MAX_S = 2.0
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def export(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "whole"
    save(folder, {name: models[name].write for name in NAMES})
    return folder


def outcome(export: Path, damage: Damage, folder: Path) -> str:
    """Return the error, "" if there is none."""
    shutil.copytree(export, folder)
    damage(folder)
    message, begin = "", time.perf_counter()
    try:
        models = seqlm.open(folder)
        for name in (*models.saved, "small", "char-laplace-3"):
            models[name].score(TEXT)
    except SeqlmError as error:
        message = str(error)
        assert message
        assert "\n" not in message
    assert time.perf_counter() - begin < MAX_S
    shutil.rmtree(folder)
    return message


def reseal(folder: Path) -> None:
    """Compute all checksums again, as somebody would who wants the folder to be read."""

    def digests(part: Path) -> dict[str, str]:
        return {path.name: sha256_of_file(path) for path in part.iterdir() if path.is_file()}

    corpus, ngrams, run = (digests(folder / name) for name in (CORPUS, NGRAMS, RUN))
    for path, change in (
        (VOCAB, lambda value: value["splits"]["train"].update(sha256=corpus["train.npy"])),
        (COUNTS, lambda value: value.update(sha256={name: ngrams[name] for name in value["sha256"]})),
        (MODEL, lambda value: value["metadata"].update(sha256=run["weights.safetensors"])),
    ):
        with suppress(KeyError, TypeError, AttributeError, OSError):
            change_stored(folder / path, change)
    files = [path for path in (folder / "data").rglob("*") if path.is_file()]
    listed = {path.relative_to(folder).as_posix(): sha256_of_file(path) for path in files}
    change_stored(folder / "export.json", lambda value: value.update(sha256=listed))


def set_json(path: str, keys: tuple[Any, ...], value: Any, folder: Path) -> None:
    """Set an entry of a description; ... removes it."""

    def change(entry: Any) -> None:
        for key in keys[:-1]:
            entry = entry[key]
        if value is ...:
            del entry[keys[-1]]
        else:
            entry[keys[-1]] = value

    change_stored(folder / path, change)
    if path != "export.json":
        reseal(folder)


def set_array(path: str, change: Callable[[np.ndarray], np.ndarray], folder: Path) -> None:
    np.save(folder / path, change(np.load(folder / path)))
    reseal(folder)


def set_weights(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]], folder: Path) -> None:
    save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS)
    reseal(folder)


def set_bytes(path: str, content: bytes | None, folder: Path) -> None:
    (folder / path).unlink() if content is None else (folder / path).write_bytes(content)
    reseal(folder)


def replaced(array: np.ndarray, index: int, value: int) -> np.ndarray:
    array = array.astype(np.int64)
    array[index] = value
    return array


def link(path: str, target: str, folder: Path) -> None:
    """Put a link in the place of a file or folder, which the target takes if it is free."""
    elsewhere = folder.parent / target
    if elsewhere.exists():
        (folder / path).unlink()
    else:
        shutil.move(folder / path, elsewhere)
    (folder / path).symlink_to(elsewhere)


def put_pipe(path: str, folder: Path) -> None:
    (folder / path).unlink(missing_ok=True)
    os.mkfifo(folder / path)


def npy(size: bytes) -> bytes:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%s,), }" % size
    return b"\x93NUMPY\x01\x00v\x00" + header.ljust(117) + b"\n"


BF16 = b'{"W_xh":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'.ljust(64)
KEYS, COUNTS_3, TRAIN = f"{NGRAMS}/keys_3.npy", f"{NGRAMS}/counts_3.npy", f"{CORPUS}/train.npy"
FILES: Mapping[str, Damage] = {
    "a device is listed": partial(set_json, "export.json", ("sha256", "/dev/zero"), "0" * 64),
    "a parent is listed": partial(set_json, "export.json", ("sha256", "data/../../x"), "0" * 64),
    "NUL in a name": partial(set_json, "export.json", ("sha256", "data/\0"), "0" * 64),
    "no file is listed": partial(set_json, "export.json", ("sha256",), {}),
    "no digests": partial(set_json, "export.json", ("sha256",), ...),
    "a list of digests": partial(set_json, "export.json", ("sha256",), ["data/x"]),
    "a file is not listed": lambda folder: (folder / "data/x.json").write_text("{}"),
    "a linked file": partial(link, WEIGHTS, "weights"),
    "a linked folder": partial(link, CORPUS, "corpus"),
    "all is linked": partial(link, "data", "all"),
    "a pipe": partial(put_pipe, WEIGHTS),
    "a pipe of a list": partial(put_pipe, "export.json"),
    "an endless list": partial(link, "export.json", "/dev/zero"),
    "a huge list": lambda folder: os.truncate(folder / "export.json", 300_000_000),
    "huge weights": lambda folder: os.truncate(folder / WEIGHTS, 10**12),
    "a name of elsewhere": partial(set_json, "export.json", ("models",), ["../../x"]),
    "a missing file": lambda folder: (folder / WEIGHTS).unlink(),
}


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "of another type": lambda array: array.astype(np.float64),
    "of objects": lambda array: array.astype(object),
    "of two dimensions": lambda array: array[None],
    "of other bytes": lambda array: array.astype(">u4"),
    "negative": lambda array: replaced(array, 0, -1),
    "too large": lambda array: replaced(array, -1, 2**62),
}
TABLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "short": lambda array: array[:-1],
    "empty": lambda array: array[:0],
}
CONTENTS: Mapping[str, Damage] = {
    **{
        f"{path.split('/')[-1]} {name}": partial(set_array, path, change)
        for path in (KEYS, COUNTS_3, TRAIN)
        for name, change in (ARRAYS if path == TRAIN else ARRAYS | TABLES).items()
    },
    "unsorted keys": partial(set_array, KEYS, lambda array: array[::-1]),
    "a key twice": partial(set_array, KEYS, lambda array: replaced(array, 1, int(array[0]))),
    "no keys": partial(set_bytes, KEYS, None),
    "keys that are text": partial(set_bytes, KEYS, b"keys"),
    "half an array": partial(set_bytes, COUNTS_3, npy(b"9")),
    "a huge shape": partial(set_bytes, COUNTS_3, npy(b"9" * 30)),
}
TENSORS: Mapping[str, Damage] = {
    name: partial(set_weights, change)
    for name, change in {
        "a missing tensor": lambda weights: dict(list(weights.items())[1:]),
        "a renamed tensor": lambda weights: {name.upper(): array for name, array in weights.items()},
        "one more tensor": lambda weights: weights | {"x": np.zeros(3, np.float32)},
        "whole numbers": lambda weights: {name: array.astype(np.int32) for name, array in weights.items()},
        "double precision": lambda weights: {name: array.astype(np.float64) for name, array in weights.items()},
        "other shapes": lambda weights: {name: array[..., :1].copy() for name, array in weights.items()},
        "NaN": lambda weights: {name: array * np.float32("nan") for name, array in weights.items()},
        "infinity": lambda weights: {name: array + np.float32("inf") for name, array in weights.items()},
    }.items()
} | {
    "no weights": partial(set_bytes, WEIGHTS, b""),
    "a huge header": partial(set_bytes, WEIGHTS, (2**62).to_bytes(8, "little") + b"{}"),
    "a broken header": partial(set_bytes, WEIGHTS, (20).to_bytes(8, "little") + b"{" * 20),
    "an unknown type": partial(set_bytes, WEIGHTS, (64).to_bytes(8, "little") + BF16 + b"00"),
}  # fmt: skip
VALUES: Mapping[str, Damage] = {
    f"{path.split('/')[-1]} {'.'.join(map(str, keys))} = {str(value)[:20]}": partial(set_json, path, keys, value)
    for path, keys, value in [
        (COUNTS, ("settings", "laplace", "epsilons", 0), -1),
        (COUNTS, ("settings", "laplace", "epsilons"), [1.0] * 9),
        (COUNTS, ("settings", "laplace", "epsilons"), ...),
        (COUNTS, ("settings", "kneser-ney", "unknown"), "x"),
        (COUNTS, ("settings", "kneser-ney"), ...),
        (COUNTS, ("starts", 2), 10**9),
        (COUNTS, ("starts",), [0] * 50),
        (COUNTS, ("models", 1, "name"), "../../x"),
        (COUNTS, ("models", 3, "order"), 7),
        (COUNTS, ("sha256",), {}),
        (COUNTS, ("vocab", 0), 10**12),
        (MODEL, ("model", "name"), "../../x"),
        (MODEL, ("model", "name"), "model"),
        (MODEL, ("model", "token"), "byte"),
        (MODEL, ("metadata", "network", "num_hiddens"), 65536),
        (MODEL, ("metadata", "network", "model"), "transformer"),
        (MODEL, ("metadata", "network", "engine"), "python"),
        (MODEL, ("metadata", "defaults", "num_threads"), -1),
        (MODEL, ("metadata", "vocab"), [1]),
        (MODEL, ("metadata",), ...),
        (VOCAB, ("tokens",), ...),
        (VOCAB, ("tokens", 1), 5),
        (VOCAB, ("tokens", 1), "t"),
        (VOCAB, ("counts",), []),
        (VOCAB, ("splits",), {}),
        (VOCAB, ("line_separator",), "ab"),
        (VOCAB, ("kind",), "subword"),
        (VOCAB, ("kind",), "word"),
        (VOCAB, ("tokenizer",), "0" * 64),
    ]
}
REFUSED = {**FILES, **CONTENTS, **TENSORS, **VALUES}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_folder_is_refused(name: str, export: Path, tmp_path: Path) -> None:
    assert outcome(export, REFUSED[name], tmp_path / "damaged")


def entries(value: Any, *keys: Any) -> Iterator[tuple[Any, ...]]:
    """Yield where the entries of a description are."""
    if keys:
        yield keys
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in items:
        if key == "checksum":
            continue
        yield from entries(inner, *keys, key)


@pytest.mark.parametrize(("seed", "number"), [(0, 120), pytest.param(1, 500, marks=pytest.mark.slow)])
def test_whatever_a_description_says_is_used_or_refused(seed: int, number: int, export: Path, tmp_path: Path) -> None:
    paths = [path.relative_to(export).as_posix() for path in sorted(export.rglob("*.json"))]
    values: list[Any] = [..., None, -1, 0, 10**30, 1.5, "x", "../../x", "\0", [], {}, [[]], True, "small"]
    damages = [
        (path, keys, value)
        for path in paths
        for keys in entries(json.loads((export / path).read_text()))
        for value in values
    ]
    chosen = random.Random(seed).sample(damages, number)
    found = [outcome(export, partial(set_json, *damage), tmp_path / "damaged") for damage in chosen]
    assert sum(map(bool, found)) > 0.7 * number


def test_the_folder_itself_can_be_used(export: Path, tmp_path: Path) -> None:
    assert outcome(export, reseal, tmp_path / "copy") == ""


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


def after_a_flip(layout: Layout, path: Path, expected: list[object], rng: random.Random) -> str:
    """Return what a flipped bit does, and undo it."""
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(flipped)
    try:
        return "same" if results(layout) == expected else "another result"
    except SeqlmError as error:
        return "refused" if "\n" not in str(error) else "several lines"
    finally:
        path.write_bytes(content)


@pytest.fixture
def stored_files(models: Models) -> list[Path]:
    folders = [models.layout.root / "data" / name for name in ("configs", "corpus", "models", "scores", "text")]
    return [path for folder in folders for path in sorted(folder.rglob("*.*")) if path.is_file()]


def test_a_flipped_bit_of_any_kind_of_file_is_noticed(stored_files: list[Path], models: Models) -> None:
    kinds, expected = {path.name: path for path in stored_files}, results(models.layout)
    assert {"keys_3.npy", "counts_3.npy", "train.npy", "unknown_val.npy", "tokenizer.json", "vocab.json"} <= set(kinds)
    assert len(kinds) > 20
    found = {name: after_a_flip(models.layout, path, expected, random.Random(0)) for name, path in kinds.items()}
    assert set(found.values()) == {"refused"}, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_changes_no_result(seed: int, stored_files: list[Path], models: Models) -> None:
    rng, expected = random.Random(seed), results(models.layout)
    chosen = rng.choices(stored_files, [path.stat().st_size for path in stored_files], k=200)
    assert {after_a_flip(models.layout, path, expected, rng) for path in chosen} <= {"refused", "same"}
