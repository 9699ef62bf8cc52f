"""Exports: folders of models without the pipeline, but with its paths, and the SHA-256 of each
file.

``seqlm.open`` reads such a folder like that of a run. It checks the files, because the folder may
come from elsewhere.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import sha256_of_file, temporary_folder, writing
from seqlm.core.layout import MODEL_FORMAT, Layout, as_path
from seqlm.core.stored import Sha256, Stored, read_verified
from seqlm.models.info import Name
from seqlm.vocab.vocabulary import VocabFile

MANIFEST = "export.json"
"""The file with the SHA-256 of all others."""
_File = Annotated[str, Field(pattern=r"^data(/[A-Za-z0-9][A-Za-z0-9_.@+-]*)+$")]


class Manifest(Stored):
    """The content of ``export.json``."""

    version = MODEL_FORMAT
    advice = "save the models again"

    models: Annotated[list[Name], Field(min_length=1)]
    """The models that were saved, without those that came along."""
    sha256: dict[_File, Sha256]
    """Of all files below ``data``."""


def require_new_folder(folder: Path) -> None:
    """Raise ParamsError if a folder exists and is not empty."""
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParamsError(f"{folder}: exists: name a new folder")


def save(folder: str | Path, writers: Mapping[str, Callable[[Layout], None]]) -> int:
    """Write models, opened or fitted, and the members of mixtures to a new folder; return the
    number of files.

    ``writers``: name of a model -> its method ``write``.

    The training text goes along only if one of the models needs it. Raises ParamsError if the
    folder exists and is not empty, and if a model holds nothing to save.
    """
    folder = as_path(folder, "folder")
    require_new_folder(folder)
    with temporary_folder(folder) as work:
        for write in writers.values():
            write(Layout(work))
        files = sorted(path for path in work.rglob("*") if path.is_file())
        hashes = {path.relative_to(work).as_posix(): sha256_of_file(path) for path in files}
        Manifest(models=list(writers), sha256=hashes).write(work / MANIFEST)
        with writing(folder):
            for path in sorted(work.iterdir()):
                path.rename(folder / path.name)
    return len(hashes) + 1


def copy_files(root: Path, paths: Iterable[Path], layout: Layout) -> None:
    """Copy files, and those of folders, to where they are below the root of a layout."""
    for path in paths:
        # A killed process may have left temporary files, whose names begin with a dot.
        for file in sorted(path.glob("[!.]*")) if path.is_dir() else [path]:
            copy = layout.root / file.relative_to(root)
            with writing(copy):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


def saved_names(folder: Path) -> list[str]:
    """Return the names of the models that :func:`save` was given; none if it made no such
    folder."""
    manifest = folder / MANIFEST
    return Manifest.read(manifest).models if manifest.exists() else []


def is_export(folder: Path) -> bool:
    """Return whether a folder is an export.

    Raises DataError unless its files are regular ones and those that are listed, and its
    descriptions unchanged; these have the SHA-256 of the other files, for those who read them.
    """
    manifest = folder / MANIFEST
    if not manifest.exists():
        return False
    listed, data = Manifest.read(manifest).sha256, folder / "data"
    paths = [data, *data.rglob("*")]
    files = {path.relative_to(folder).as_posix() for path in paths if not path.is_dir()}
    links = {path.relative_to(folder).as_posix() for path in paths if path.is_symlink()}
    if wrong := sorted(links | (files ^ listed.keys())):
        problem = f"missing, a link, or not listed in {MANIFEST}"
        raise DataError(f"{folder / wrong[0]}: {problem}: {Manifest.advice}")
    for name in listed:
        if name.endswith(".json"):
            read_verified(folder / name, listed[name], Manifest.advice, VocabFile.max_bytes)
    return True
