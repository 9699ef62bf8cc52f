"""Exports: folders of models without the pipeline, but with its paths, and the SHA-256 of each
file.

``seqlm.open`` reads such a folder like that of a run. It checks the files, because the folder may
come from elsewhere.
"""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from seqlm.core.errors import ParamsError
from seqlm.core.files import (
    read_checksummed,
    sha256_of_file,
    temporary_folder,
    verify_sha256,
    write_checksummed,
    writing,
)
from seqlm.core.layout import MODEL_FORMAT, Layout, as_path

MANIFEST = "export.json"
"""The file with the SHA-256 of all others."""
_ADVICE = "save the models again"


class Savable(Protocol):
    """A model that has files, or can write them."""

    @property
    def name(self) -> str:
        """The model's name."""

    source_files: tuple[Path, Sequence[Path]] | None
    """The root of the run or export that the model was opened from, and the files and folders below
    it that the model needs."""

    def write(self, layout: Layout) -> None:
        """Write the files of a model that was opened nowhere."""


def save(folder: str | Path, models: Iterable[Savable]) -> int:
    """Write models, opened or fitted, and the members of mixtures to a new folder; return the
    number of files.

    The training text goes along only if one of the models needs it. Raises ParamsError if the
    folder exists and is not empty, and if a model holds nothing to save.
    """
    folder = as_path(folder, "folder")
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParamsError(f"{folder}: exists: name a new folder")
    names = []
    with temporary_folder(folder) as work:
        for model in models:
            names.append(model.name)
            if model.source_files is None:
                model.write(Layout(work))
            else:
                _copy(*model.source_files, work)
        files = sorted(path for path in work.rglob("*") if path.is_file())
        hashes = {path.relative_to(work).as_posix(): sha256_of_file(path) for path in files}
        write_checksummed(
            work / MANIFEST, {"format": MODEL_FORMAT, "models": names, "sha256": hashes}
        )
        with writing(folder):
            for path in sorted(work.iterdir()):
                path.rename(folder / path.name)
    return len(hashes) + 1


def _copy(root: Path, paths: Iterable[Path], target: Path) -> None:
    """Copy files, and all files of folders, to where they are below another root."""
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            copy = target / file.relative_to(root)
            with writing(copy):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


def saved_names(folder: Path) -> list[str]:
    """Return the names of the models that :func:`save` was given; none if it made no such
    folder."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return []
    names: list[str] = read_checksummed(manifest, MODEL_FORMAT, _ADVICE)["models"]
    return names


def is_export(folder: Path) -> bool:
    """Return whether a folder is an export. Raises DataError if a file of it is missing or
    changed."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return False
    for name, digest in read_checksummed(manifest, MODEL_FORMAT, _ADVICE)["sha256"].items():
        verify_sha256(folder / name, digest, MANIFEST, _ADVICE)
    return True
