"""Folders with the models of a finished run and the files that these need, but without DVC and the scripts.

The files have the same places as in the run, so both are opened in the same way. ``export.json`` has their SHA-256.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import (
    read_checksummed,
    read_csv,
    require_sha256,
    sha256_of_file,
    write_checksummed,
    write_errors,
    write_text,
)
from seqlm.core.layout import Layout
from seqlm.vocab.kinds import KINDS

FORMAT = 2
_MANIFEST = "export.json"
_ADVICE = "export again"
_OF_CORPUS = {"vocab.json", "tokenizer.json", "train.npy"}
_README = Path(__file__).with_name("exported.md")
"""The README of an exported folder, with places for its name, the best model, and the rows of a table."""


def export_models(layout: Layout, folder: Path) -> int:
    """Write the models of a finished run to a new folder; return the number of files.

    Raises ParamsError if the folder exists and is not empty, and DataError if the run has not finished.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParamsError(f"{folder}: exists: name a new folder")
    table = read_csv(layout.reports("evaluate", "table.csv"))
    hashes = {}
    for path in sorted(_files(layout)):
        name = path.relative_to(layout.root).as_posix()
        hashes[name] = sha256_of_file(path)
        with write_errors(folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
    write_checksummed(folder / _MANIFEST, {"format": FORMAT, "sha256": hashes})
    rows = [f"| {row.model} | {row.test_bits:.3f} | {row.test_perplexity:.2f} |" for row in table.itertuples()]
    readme = _README.read_text(encoding="utf-8")
    best = table["model"].iloc[0]
    write_text(folder / "README.md", readme.format(name=folder.name, best=best, rows="\n".join(rows)))
    return len(hashes) + 2


def _files(layout: Layout) -> Iterator[Path]:
    """Yield the files of a run that its models are made of, and its main table."""
    yield layout.params
    yield layout.reports("evaluate", "table.csv")
    yield layout.heldout("char") / "folds.json"
    for kind in KINDS:
        yield from (path for path in _inside(layout.corpus(kind)) if path.name in _OF_CORPUS)
    for folder in (layout.configs, layout.ngrams(""), layout.runs, layout.mixtures):
        yield from _inside(folder)
    yield from layout.scores.rglob("score.json")


def _inside(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: run the pipeline first")
    return (path for path in folder.rglob("*") if path.is_file())


def require_intact(folder: Path) -> None:
    """Raise DataError if a file of an exported folder is missing or was changed. A run's own folder is not checked."""
    if (folder / _MANIFEST).is_file():
        for name, digest in read_checksummed(folder / _MANIFEST, FORMAT, _ADVICE)["sha256"].items():
            require_sha256(folder / name, digest, _MANIFEST, _ADVICE)
