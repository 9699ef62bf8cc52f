"""The registry of corpora, and the ways to get a corpus.

A registered corpus is known by its SHA-256, so it is the same text whichever source it came from. A user's own file is
taken as it is.

pooch keeps the cache and writes whole files. Its own transfer gives up neither on a server that drips nor on one that
never ends, and asks no busy server again, so it is given :func:`_transfer`.
"""

import gzip
import shutil
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pooch
import requests
import urllib3
from pydantic import Field

from seqlm.core.errors import DataError, DownloadError, ParamsError
from seqlm.core.files import open_packed, read_errors, replacing, sha256_of_file, write_errors
from seqlm.core.progress import Log, quantity
from seqlm.core.settings import Section
from seqlm.download.settings import Limits

_RETRIES = urllib3.Retry(
    3, connect=0, read=False, backoff_factor=0.2, status_forcelist=(429, 500, 502, 503, 504),
    respect_retry_after_header=False, raise_on_status=False,
)  # fmt: skip
"""A busy server is asked again, after at most a second and a half in all, whatever it says."""
_BLOCK = 1 << 20
_HEAD_BYTES = 512
_HTML_MARKS = (b"<!doctype html", b"<html")


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


def fetch(url: str, folder: Path, corpus: Corpus, limits: Limits) -> Path:
    """Return the path of ``corpus`` in ``folder``; it is fetched from ``url`` if it is missing.

    Raises DownloadError if the source cannot be reached or breaks off, DataError if it sends
    bytes with another hash, and MachineError if the folder cannot be written.
    """
    pooch.get_logger().setLevel("ERROR")
    transfer = partial(_transfer, corpus=corpus, limits=limits)
    return Path(pooch.retrieve(url, f"sha256:{corpus.sha256}", corpus.file, folder, downloader=transfer))


def _transfer(url: str, target: str, _pooch: object, *, corpus: Corpus, limits: Limits) -> None:
    """Write the body of ``url`` to a file, as pooch asks for it; raises as :func:`fetch`."""
    deadline, path = time.monotonic() + limits.deadline_s, Path(target)
    max_bytes = min(limits.max_bytes, corpus.bytes)
    with requests.Session() as session, write_errors(path.parent), path.open("wb") as file:
        for scheme in ("http://", "https://"):
            session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=_RETRIES))
        for block in _body(session, url, limits.timeout_s):
            if file.tell() + len(block) > max_bytes:
                raise DataError(f"{url}: sends more than {quantity(max_bytes, 'byte')}")
            if time.monotonic() > deadline:
                raise DownloadError(f"{url}: not finished after {limits.deadline_s:g} seconds")
            file.write(block)
    _require_hash(path, url, corpus)


def _body(session: requests.Session, url: str, timeout_s: float) -> Iterator[bytes]:
    """Yield the body of an answer as it arrives. Errors become a DownloadError with a short reason."""
    try:
        with session.get(url, stream=True, timeout=timeout_s) as response:
            if not response.ok:
                raise DownloadError(f"{url}: HTTP {response.status_code} {response.reason}")
            # `read` would wait for a whole block, however slowly it drips.
            while block := response.raw.read1(_BLOCK, decode_content=True):
                yield block
    except requests.Timeout as error:
        raise DownloadError(f"{url}: no answer in time") from error
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"{url}: its certificate cannot be verified") from error
    except requests.ConnectionError as error:
        raise DownloadError(f"{url}: cannot be reached") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise DownloadError(f"{url}: the transfer broke off ({type(error).__name__})") from error


def _require_hash(path: Path, where: str, corpus: Corpus) -> Path:
    """Return ``path``. Raises DataError, which calls it ``where``, unless it has the SHA-256 of ``corpus``."""
    if (found := sha256_of_file(path)) != corpus.sha256:
        with path.open("rb") as file:
            is_html = file.read(_HEAD_BYTES).lstrip().lower().startswith(_HTML_MARKS)
        what = "a web page (HTML) instead of the text" if is_html else "not the expected text"
        raise DataError(f"{where}: {what}: SHA-256 expected {corpus.sha256}, found {found}")
    return path


def is_registered(name: str, registry: dict[str, Corpus], root: Path) -> bool:
    """Whether ``name`` is a registered corpus; otherwise it must be the path of a file, relative to ``root``.

    Raises ParamsError if it is neither.
    """
    path = root / name
    if name in registry or path.exists() or path.is_symlink():
        return name in registry
    raise ParamsError(f"download.corpus = {name!r}: neither a registered corpus ({', '.join(registry)}) nor a file")


@dataclass(frozen=True)
class Sources:
    """Where registered corpora are looked for."""

    data_folder: Path | None
    cache: Path
    sample: Path
    """The file of the embedded sample."""
    limits: Limits

    def find(self, name: str, corpus: Corpus, log: Log) -> Path:
        """Return a file with the hash of ``corpus``: from the data folder, the cache, or a URL.

        Each source that fails is logged. Raises DataError if a source has other bytes,
        DownloadError if none can be reached.
        """
        if not corpus.urls:
            return _require_hash(self.sample, str(self.sample), corpus)
        if self.data_folder is not None and (own := self.data_folder / corpus.file).exists():
            return _require_hash(own, str(own), corpus)
        wrong: DataError | None = None
        for url in corpus.urls:
            try:
                return fetch(url, self.cache, corpus, self.limits)
            except (DataError, DownloadError) as error:
                log(str(error))
                wrong = wrong or (error if isinstance(error, DataError) else None)
        folder = self.data_folder or "the folder that SEQLM_DATA_DIR names"
        raise wrong or DownloadError(
            f"{name}: no source can be reached: connect to the network, or put {corpus.file} into {folder}"
        )


def get_registered(
    name: str, registry: dict[str, Corpus], sources: Sources, fallback: str | None, text: Path, log: Log
) -> dict[str, Any]:
    """Make ``text`` the registered corpus and return its record. A file with the right SHA-256 is kept as it is.

    If no source can be reached, the corpus ``fallback`` takes its place, and the record and the
    log say so; but it never replaces another text, which would be lost. Raises DownloadError or
    DataError.
    """
    used, reason = name, None
    if not _is(text, registry[name]):
        try:
            path = sources.find(name, registry[name], log)
        except DownloadError as error:
            if fallback is None or fallback == name:
                raise
            if text.exists() and not _is(text, registry[fallback]):
                raise DownloadError(
                    f"{error}; {text} holds another text, which {fallback!r} does not replace: set download.corpus "
                    "back to that one, or remove the file"
                ) from error
            log(f"NO SOURCE OF {name} CAN BE REACHED: the corpus {fallback!r} takes its place ({error})")
            used, reason = fallback, f"no source of {name} could be reached"
            path = sources.find(fallback, registry[fallback], log)
        with replacing(text) as temporary:
            shutil.copyfile(path, temporary)
    return _record(used, registry[used].model_dump(exclude={"urls"}), name, reason)


def _is(text: Path, corpus: Corpus) -> bool:
    return text.is_file() and sha256_of_file(text) == corpus.sha256


def _record(name: str, described: dict[str, Any], requested: str, reason: str | None = None) -> dict[str, Any]:
    """Return what is known of a corpus; ``reason`` says why it is another one than was requested."""
    return {"name": name, "requested": requested, "fallback": reason is not None, "reason": reason} | described


def copy_own_text(path: Path, max_bytes: int, text: Path, name: str | None = None) -> dict[str, Any]:
    """Copy a user's own text file, unpacked if it is gzip, to ``text`` and return its record.

    Raises DataError, which calls it by ``name`` or its path, if it is no regular file, empty, broken or larger than
    ``max_bytes``.
    """
    name = name or str(path)
    if not path.is_file():
        raise DataError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    with replacing(text) as temporary, temporary.open("wb") as target:
        for block in _blocks(path, name):
            if target.tell() + len(block) > max_bytes:
                raise DataError(f"{name}: more than {quantity(max_bytes, 'byte')} unpacked: raise download.max_bytes")
            target.write(block)
        if target.tell() == 0:
            raise DataError(f"{name}: empty: use another text")
    own: dict[str, Any] = {"file": path.name, "sha256": sha256_of_file(text), "bytes": text.stat().st_size}
    # A space, so that the last word of a line and the first of the next stay two words.
    own |= {"line_separator": " ", "licence": "", "description": "your file"}
    return _record(path.name, own, path.name)


def _blocks(path: Path, name: str) -> Iterator[bytes]:
    """Yield the content of a file, unpacked if it is gzip; raise DataError or MachineError if it cannot be read."""
    with read_errors(path), open_packed(path) as source:
        try:
            while block := source.read(_BLOCK):
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{name}: not a complete gzip file: {error}") from error
