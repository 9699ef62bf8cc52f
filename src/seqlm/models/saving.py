"""Folders of saved models: without the pipeline, but with its files, and the SHA-256 of each.

``seqlm.open`` reads such a folder like that of a run. It checks the files, because the folder may
come from elsewhere.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from seqlm.core.errors import ParamsError
from seqlm.core.files import (
    read_checksummed,
    sha256_of_file,
    temporary_folder,
    verify_sha256,
    write_checksummed,
    writing,
)
from seqlm.core.layout import Layout, as_path

if TYPE_CHECKING:
    from seqlm.models.language_model import LanguageModel

_FORMAT = 4
_NAME = "export.json"
_ADVICE = "save the models again"


def save(folder: str | Path, models: "Iterable[LanguageModel]") -> int:
    """Write models, from a run or fitted, and the members of mixtures to a new folder; return the
    number of files.

    The training text goes along only if one of the models needs it. Raises ParamsError if the
    folder exists and is not empty, and if a model holds nothing to save.
    """
    folder = as_path(folder, "folder")
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParamsError(f"{folder}: exists: name a new folder")
    with temporary_folder(folder) as work:
        for model in models:
            if model.files is None:
                model.write(Layout(work))
                continue
            root, files = model.files
            for path in (
                each
                for file in files
                for each in ([file] if file.is_file() else sorted(file.iterdir()))
            ):
                target = work / path.relative_to(root)
                with writing(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
        found = sorted(path for path in work.rglob("*") if path.is_file())
        hashes = {path.relative_to(work).as_posix(): sha256_of_file(path) for path in found}
        write_checksummed(work / _NAME, {"format": _FORMAT, "sha256": hashes})
        with writing(folder):
            for path in sorted(work.iterdir()):
                path.rename(folder / path.name)
        return len(hashes) + 1


def check_sealed(folder: Path) -> bool:
    """Return whether a folder was saved, and not made by a run. Raises DataError if a file is
    missing or changed."""
    if not (folder / _NAME).is_file():
        return False
    for name, digest in read_checksummed(folder / _NAME, _FORMAT, _ADVICE)["sha256"].items():
        verify_sha256(folder / name, digest, _NAME, _ADVICE)
    return True
