"""Folders of models that were exported from a run, or saved: which models they hold, and that no file was changed.

Their files have the same places as in a run, so all are opened in the same way.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from seqlm.core.errors import ParamsError
from seqlm.core.files import (
    read_checksummed,
    require_sha256,
    sha256_of_file,
    temporary_folder,
    write_checksummed,
    write_errors,
)

_FORMAT = 3
_NAME = "export.json"
_ADVICE = "export again"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder inside ``folder``, from which all moves there at the end, unless an error comes.

    Raises ParamsError if the folder exists and is not empty, and MachineError if the system refuses.
    """
    with write_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ParamsError(f"{folder}: exists: name a new folder")
    with temporary_folder(folder) as work:
        yield work
        with write_errors(folder):
            for path in sorted(work.iterdir()):
                path.rename(folder / path.name)


def seal(folder: Path, models: Sequence[str]) -> int:
    """Write ``export.json`` with the names of the models and the SHA-256 of every file; return how many files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): sha256_of_file(path) for path in files}
    write_checksummed(folder / _NAME, {"format": _FORMAT, "models": list(models), "sha256": hashes})
    return len(files) + 1


def sealed_models(folder: Path) -> list[str] | None:
    """Return the names of the models of a folder that was sealed; None for a run's own folder, which is not checked.

    Raises DataError if a file is missing or was changed.
    """
    if not (folder / _NAME).is_file():
        return None
    manifest = read_checksummed(folder / _NAME, _FORMAT, _ADVICE)
    for name, digest in manifest["sha256"].items():
        require_sha256(folder / name, digest, _NAME, _ADVICE)
    return list(manifest["models"])
