"""The registry of corpora, and the ways to get a corpus.

A registered corpus is known by its SHA-256, so it is the same text whichever source it came from. A
user's own file is taken as it is. pooch fetches, keeps the cache and writes whole files.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pooch
import requests
from pydantic import Field

from seqlm.core.errors import DataError, DownloadError, ParamsError, SeqlmError
from seqlm.core.files import atomic_write, open_unpacked, sha256_of_file, writing
from seqlm.core.progress import Log
from seqlm.core.settings import Section

_TIMEOUT_S = 10
"""Seconds of silence after which a source is given up."""
_BLOCK_BYTES = 1 << 20
"""Bytes that are copied at once."""


class Corpus(Section):
    """A registered corpus."""

    file: str
    """The name of its file in a data folder and in the cache."""
    urls: list[str]
    """Where it is published, in the order in which they are tried."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(gt=0)]
    line_separator: Literal["", " ", "\n"]
    """What joins the lines of its cleaned text if ``vocab.line_separator`` is auto."""
    licence: str
    description: str


Find = Callable[[str, Corpus], Path]
"""Returns the file of a corpus, given its name too."""


def is_registered(name: str, registry: dict[str, Corpus], root: Path) -> bool:
    """Whether ``name`` is a registered corpus; otherwise it must be the path of a file, relative to
    ``root``.

    Raises ParamsError if it is neither.
    """
    path = root / name
    if name in registry or path.exists() or path.is_symlink():
        return name in registry
    raise ParamsError(
        f"download.corpus = {name!r}: neither a registered corpus ({', '.join(registry)}) nor a "
        "file"
    )


def locate_or_download(
    name: str, corpus: Corpus, folders: Sequence[Path], cache: Path, log: Log
) -> Path:
    """Return a file with the hash of ``corpus``: from one of the folders, in their order, the
    cache, or a URL.

    Each source that fails is logged. Raises DataError if a source has other bytes, DownloadError if
    none can be reached.
    """
    for path in (folder / corpus.file for folder in folders):
        if path.exists():
            if (found := sha256_of_file(path)) != corpus.sha256:
                raise DataError(
                    f"{path}: not the expected text: SHA-256 expected {corpus.sha256}, found "
                    f"{found}"
                )
            return path
    problem: SeqlmError = DownloadError(
        f"{name}: no source is reachable: check your network connection, or put {corpus.file} into "
        f"{folders[0]}"
    )
    pooch.get_logger().setLevel("ERROR")
    transfer = pooch.HTTPDownloader(timeout=_TIMEOUT_S)
    for url in corpus.urls:
        try:
            return Path(
                pooch.retrieve(
                    url, f"sha256:{corpus.sha256}", corpus.file, cache, downloader=transfer
                )
            )
        except requests.RequestException as error:
            log(f"{url}: cannot be fetched: {error}")
        except ValueError as error:  # of another hash
            problem = DataError(f"{url}: {error}")
            log(str(problem))
    raise problem


def fetch_registered(
    name: str, registry: dict[str, Corpus], fallback: str | None, text: Path, find: Find, log: Log
) -> dict[str, Any]:
    """Make ``text`` the registered corpus and return its record. A file with the right SHA-256 is
    kept as it is.

    ``find`` returns the file of a corpus, as :func:`locate_or_download` does. If no source can be
    reached, the corpus ``fallback`` takes its place, and the record and the log say so; but it
    never replaces another text, which would be lost. Raises DownloadError or DataError.
    """
    present, used, reason = sha256_of_file(text) if text.is_file() else None, name, None
    if present != registry[name].sha256:
        try:
            path = find(name, registry[name])
        except DownloadError as error:
            if fallback is None:
                raise
            if present not in (None, registry[fallback].sha256):
                raise DownloadError(
                    f"{error}; {text} holds another text, which {fallback!r} does not replace: "
                    "set download.corpus "
                    "back to that one, or remove the file"
                ) from error
            log(
                f"NO SOURCE OF {name} CAN BE REACHED: the corpus {fallback!r} takes its place "
                f"({error})"
            )
            used, reason = fallback, f"no source of {name} could be reached"
            path = find(fallback, registry[fallback])
        with atomic_write(text) as temporary:
            shutil.copyfile(path, temporary)
    return _record(used, name, reason) | registry[used].model_dump(exclude={"urls"})


def _record(name: str, requested: str, reason: str | None = None) -> dict[str, Any]:
    """Return what is known of a corpus; ``reason`` says why it is another one than was
    requested."""
    return {"name": name, "requested": requested, "fallback": reason is not None, "reason": reason}


def copy_text_file(path: Path, text: Path, name: str | None = None) -> dict[str, Any]:
    """Copy a user's own text file, unpacked if it is packed, to ``text`` and return its record.

    Raises DataError, which calls it by ``name`` or its path, if it is not a regular file, or is
    empty or broken.
    """
    name = name or str(path)
    if not path.is_file():
        raise DataError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    with (
        atomic_write(text) as temporary,
        temporary.open("wb") as target,
        open_unpacked(path, name) as source,
    ):
        while block := source.read(_BLOCK_BYTES):
            with writing(text):  # a full disk is not the fault of the text that is read
                target.write(block)
        if target.tell() == 0:
            raise DataError(f"{name}: empty: use another text")
    own = {"file": path.name, "sha256": sha256_of_file(text), "bytes": text.stat().st_size}
    # A space, so that the last word of a line and the first of the next stay two words.
    return (
        _record(path.name, path.name)
        | own
        | {"line_separator": " ", "licence": "", "description": "your file"}
    )
