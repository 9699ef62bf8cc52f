"""The registry of corpora, and the ways to get a corpus.

A registered corpus is known by its SHA-256, so it is the same text whichever source it came from. A
user's own file is taken as it is. pooch fetches, keeps the cache and writes whole files.
"""

import os
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

import pooch
import requests
from pydantic import Field

from seqlm.core.errors import DataError, DownloadError, ParamsError, SeqlmError
from seqlm.core.files import atomic_write, open_unpacked, require_own_file, sha256_of_file, writing
from seqlm.core.layout import Layout
from seqlm.core.progress import Log
from seqlm.core.settings import Section, load
from seqlm.core.stored import Sha256
from seqlm.pipeline.download.settings import DownloadParams

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
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]
    line_separator: Literal["", " ", "\n"]
    """What joins the lines of its cleaned text if ``vocab.line_separator`` is auto."""
    licence: str
    description: str


def get_corpus(layout: Layout, params: DownloadParams, log: Log) -> dict[str, Any]:
    """Make the raw text the requested corpus, and return its record.

    A registered corpus with the right SHA-256 is kept as it is. If none of its sources can be
    reached, the corpus ``fallback`` takes its place, and the record and the log say so; but it
    never replaces another text, which would be lost. Any other name is the path of a user's own
    file, relative to the root. Raises ParamsError if there is no such file, and DownloadError or
    DataError if nothing can be had.
    """
    registry = load(layout.registry, "corpora", dict[str, Corpus])
    name, fallback, text = params.corpus, params.fallback, layout.raw_text
    if name not in registry:
        path = layout.root / name
        if not (path.exists() or path.is_symlink()):
            corpora = ", ".join(registry)
            raise ParamsError(
                f"download.corpus = {name!r}: neither a registered corpus ({corpora}) nor a file"
            )
        return copy_text_file(path, text)
    present, used, reason = sha256_of_file(text) if text.is_file() else None, name, None
    if present != registry[name].sha256:
        try:
            path = _find(name, registry[name], layout, log)
        except DownloadError as error:
            if fallback is None:
                raise
            if present not in (None, registry[fallback].sha256):
                raise DownloadError(
                    f"{error}; {text} holds another text, which {fallback!r} does not replace: "
                    "set download.corpus back to that one, or remove the file"
                ) from error
            log(
                f"NO SOURCE OF {name} CAN BE REACHED: the corpus {fallback!r} takes its place "
                f"({error})"
            )
            used, reason = fallback, f"no source of {name} could be reached"
            path = _find(fallback, registry[fallback], layout, log)
        with atomic_write(text) as temporary:
            shutil.copyfile(path, temporary)
    return _record(used, name, reason) | registry[used].model_dump(exclude={"urls"})


def _find(name: str, corpus: Corpus, layout: Layout, log: Log) -> Path:
    """Return a file with the hash of ``corpus``: from ``data``, the folder that SEQLM_DATA_DIR
    names, the cache, or a URL, in this order.

    Each URL that fails is logged. Raises DataError if a source has other bytes, DownloadError if
    none can be reached.
    """
    folders = [layout.sample.parent, *map(Path, filter(None, [os.environ.get("SEQLM_DATA_DIR")]))]
    for path in (folder / corpus.file for folder in folders):
        if path.exists():
            if (found := sha256_of_file(path)) != corpus.sha256:
                problem = f"SHA-256 expected {corpus.sha256}, found {found}"
                raise DataError(f"{path}: not the expected text: {problem}")
            return path
    failure: SeqlmError = DownloadError(
        f"{name}: no source is reachable: check your network connection, or put {corpus.file} into "
        f"{folders[0]}"
    )
    pooch.get_logger().setLevel("ERROR")
    transfer, cache = pooch.HTTPDownloader(timeout=_TIMEOUT_S), pooch.os_cache("seqlm")
    for url in corpus.urls:
        try:
            known = f"sha256:{corpus.sha256}"
            return Path(pooch.retrieve(url, known, corpus.file, cache, downloader=transfer))
        except requests.RequestException as error:
            log(f"{url}: cannot be fetched: {error}")
        except ValueError as error:  # of another hash
            failure = DataError(f"{url}: {error}")
            log(str(failure))
    raise failure


def _record(name: str, requested: str, reason: str | None = None) -> dict[str, Any]:
    """Return what is known of a corpus; ``reason`` says why it is another one than was
    requested."""
    return {"name": name, "requested": requested, "fallback": reason is not None, "reason": reason}


def copy_text_file(path: Path, text: Path) -> dict[str, Any]:
    """Copy a user's own text file, unpacked if it is packed, to ``text`` and return its record.

    Raises DataError if it is not a regular file, or is empty or broken.
    """
    require_own_file(path, str(path))
    with (
        atomic_write(text) as temporary,
        temporary.open("wb") as target,
        open_unpacked(path, str(path)) as source,
    ):
        while block := source.read(_BLOCK_BYTES):
            with writing(text):  # a full disk is not the fault of the text that is read
                target.write(block)
        if target.tell() == 0:
            raise DataError(f"{path}: empty: use another text")
    own = {"file": path.name, "sha256": sha256_of_file(text), "bytes": text.stat().st_size}
    # A space, so that the last word of a line and the first of the next stay two words.
    return (
        _record(path.name, path.name)
        | own
        | {"line_separator": " ", "licence": "", "description": "your file"}
    )
