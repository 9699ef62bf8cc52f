"""The registry of corpora, and the ways to get a corpus.

A registered corpus is known by its SHA-256, so it is the same text whichever source it came from. A user's own file is
taken as it is.

A corpus is fetched over HTTP in bounded time and size. pooch keeps the cache and writes whole files, but its own
transfer gives up neither on a server that drips nor on one that never ends, and does not tell a full disk from a broken
connection. So it is given :func:`_transfer`.
"""

import gzip
import hashlib
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, cast
from urllib.parse import urlsplit

import pooch
import requests
import urllib3
from pydantic import Field

from seqlm.core.errors import DataError, DownloadError, ParamsError
from seqlm.core.files import read_errors, replacing, sha256_of_file, write_errors
from seqlm.core.progress import Log
from seqlm.core.settings import Section
from seqlm.core.text import quantity
from seqlm.download.settings import Limits

_RETRIED_STATUS = frozenset({429, 500, 502, 503, 504})
_MAX_TRIES = 3
_READ_BYTES = 1 << 16
_HTML_MARKS = (b"<!doctype html", b"<html")


def fetch(url: str, folder: Path, file_name: str, sha256: str, limits: Limits) -> Path:
    """Return the path in ``folder`` of the file with this hash; it is fetched from ``url`` if it is missing.

    Raises DownloadError if the source cannot be reached or breaks off, DataError if it sends
    bytes with another hash, and MachineError if the folder cannot be written.
    """
    pooch.get_logger().setLevel("ERROR")
    transfer = partial(_transfer, sha256=sha256, limits=limits)
    return Path(pooch.retrieve(url, f"sha256:{sha256}", file_name, folder, downloader=transfer))


def _transfer(url: str, target: str, _pooch: object, *, sha256: str, limits: Limits) -> None:
    """Write the body of ``url`` to a file, as pooch asks for it; raises as :func:`fetch`."""
    deadline = time.monotonic() + limits.deadline_s
    digest, head, received = hashlib.sha256(), b"", 0
    with _SafeSession() as session:
        response = _response(session, url, limits, deadline)
        with write_errors(Path(target).parent), Path(target).open("wb") as file:
            while block := _next_block(url, response):
                head = head or block
                digest.update(block)
                received += file.write(block)
                if received > limits.max_bytes:
                    limit = quantity(limits.max_bytes, "byte")
                    raise DataError(f"{url}: sends more than {limit}, its known size or download.max_bytes")
                if time.monotonic() > deadline:
                    raise DownloadError(f"{url}: not finished after {limits.deadline_s:g} seconds")
    promised = response.headers.get("Content-Length", "")
    if promised.isdecimal() and "Content-Encoding" not in response.headers and received < int(promised):
        raise DownloadError(f"{url}: broke off after {received} of {promised} bytes")
    if digest.hexdigest() != sha256:
        raise wrong_hash(url, sha256, digest.hexdigest(), head)


def _response(session: requests.Session, url: str, limits: Limits, deadline: float) -> requests.Response:
    """Return the first response that is not a request to try again. Raises DownloadError if there is none in time."""
    for attempt in range(1, _MAX_TRIES + 1):
        with _network_errors(url):
            response = session.get(url, stream=True, timeout=limits.timeout_s)
        value = response.headers.get("Retry-After", "")
        wait = float(value) if value.isdecimal() else 0.5
        if response.status_code not in _RETRIED_STATUS or time.monotonic() + wait > deadline:
            break
        if attempt < _MAX_TRIES:
            time.sleep(wait)
    if not response.ok:
        raise DownloadError(f"{url}: HTTP {response.status_code} {response.reason}")
    return response


def _next_block(url: str, response: requests.Response) -> bytes:
    """Return what has arrived of a body: ``read`` would wait for a whole block, however slowly it drips."""
    with _network_errors(url):
        block: bytes = response.raw.read1(_READ_BYTES, decode_content=True)
    return block


def wrong_hash(where: str, expected: str, found: str, head: bytes) -> DataError:
    """Return the error of a file with another hash than the registry's; ``head`` are its first bytes."""
    is_html = head.lstrip().lower().startswith(_HTML_MARKS)
    what = "a web page (HTML) instead of the text" if is_html else "not the expected text"
    return DataError(f"{where}: {what}: SHA-256 expected {expected}, found {found}")


class _SafeSession(requests.Session):
    """Follows redirects, but never from https to http."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target and urlsplit(resp.url).scheme == "https" and urlsplit(target).scheme == "http":
            raise DownloadError(f"{resp.url}: redirects from https to http: refused")
        return target


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    """Turn errors of the network into a DownloadError with a short reason: theirs spell out objects and addresses."""
    try:
        yield
    except requests.Timeout as error:
        raise DownloadError(f"{url}: no answer in time") from error
    except requests.exceptions.SSLError as error:
        raise DownloadError(f"{url}: its certificate cannot be verified") from error
    except requests.ConnectionError as error:
        raise DownloadError(f"{url}: cannot be reached") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise DownloadError(f"{url}: the transfer broke off ({type(error).__name__})") from error


_BLOCK = 1 << 20
_HEAD_BYTES = 512


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
            return _verified(self.sample, corpus)
        if self.data_folder is not None and (own := self.data_folder / corpus.file).exists():
            return _verified(own, corpus)
        limits = self.limits.model_copy(update={"max_bytes": min(self.limits.max_bytes, corpus.bytes)})
        wrong: DataError | None = None
        for url in corpus.urls:
            try:
                return fetch(url, self.cache, corpus.file, corpus.sha256, limits)
            except (DataError, DownloadError) as error:
                log(str(error))
                wrong = wrong or (error if isinstance(error, DataError) else None)
        folder = self.data_folder or "the folder that SEQLM_DATA_DIR names"
        raise wrong or DownloadError(
            f"{name}: no source can be reached: connect to the network, or put {corpus.file} into {folder}"
        )


def _verified(path: Path, corpus: Corpus) -> Path:
    if (found := sha256_of_file(path)) != corpus.sha256:
        with path.open("rb") as file:
            raise wrong_hash(str(path), corpus.sha256, found, file.read(_HEAD_BYTES))
    return path


def get_registered(
    name: str, registry: dict[str, Corpus], sources: Sources, fallback: str | None, text: Path, log: Log
) -> dict[str, Any]:
    """Make ``text`` the registered corpus and return its record. A file with the right SHA-256 is kept as it is.

    If no source can be reached, the corpus ``fallback`` takes its place, and the record and the
    log say so; but it never replaces another text, which would be lost. Raises DownloadError or
    DataError.
    """
    record = _record(name, registry[name].model_dump(exclude={"urls"}))
    if _is(text, registry[name]):
        return record
    try:
        path = sources.find(name, registry[name], log)
    except DownloadError as error:
        if fallback is None or fallback == name:
            raise
        if text.exists() and not _is(text, registry[fallback]):
            raise DownloadError(
                f"{error}; {text} holds another text, which {fallback!r} does not replace: set download.corpus back "
                "to that one, or remove the file"
            ) from error
        log(f"NO SOURCE OF {name} CAN BE REACHED: using the corpus {fallback!r} instead ({error})")
        replaced = {"requested": name, "fallback": True, "reason": f"no source of {name} could be reached"}
        record = _record(fallback, registry[fallback].model_dump(exclude={"urls"})) | replaced
        path = sources.find(fallback, registry[fallback], log)
    with replacing(text) as temporary:
        shutil.copyfile(path, temporary)
    return record


def _is(text: Path, corpus: Corpus) -> bool:
    return text.is_file() and sha256_of_file(text) == corpus.sha256


def _record(name: str, described: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "requested": name, "fallback": False, "reason": None} | described


def copy_own_text(path: Path, max_bytes: int, text: Path, name: str | None = None) -> dict[str, Any]:
    """Copy a user's own text file, unpacked if it is ``.gz``, to ``text`` and return its record.

    Raises DataError, which calls it by ``name`` or its path, if it is no regular file, empty, broken or larger than
    ``max_bytes``.
    """
    name = name or str(path)
    _require_regular_file(path)
    with replacing(text) as temporary, temporary.open("wb") as target:
        for block in _blocks(path, name):
            if target.tell() + len(block) > max_bytes:
                limit = quantity(max_bytes, "byte")
                raise DataError(f"{name}: more than {limit} unpacked: raise download.max_bytes")
            target.write(block)
        if target.tell() == 0:
            raise DataError(f"{name}: empty: use another text")
    own = {"file": path.name, "sha256": sha256_of_file(text), "bytes": text.stat().st_size}
    # A space, so that the last word of a line and the first of the next stay two words.
    return _record(path.name, own | {"line_separator": " ", "licence": "not stated", "description": "own text"})


def _blocks(path: Path, name: str) -> Iterator[bytes]:
    """Yield the content of a file, unpacked if it is ``.gz``; raise DataError or MachineError if it cannot be read."""
    with read_errors(path), cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as source:
        try:
            while block := source.read(_BLOCK):
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{name}: not a complete gzip file: {error}") from error


def _require_regular_file(path: Path) -> None:
    """Raise DataError unless ``path`` is a regular file."""
    if not path.exists():
        raise DataError(f"{path}: {'a broken link' if path.is_symlink() else 'no such file'}")
    if path.is_dir():
        raise DataError(f"{path}: a folder, not a text file")
    if not path.is_file():
        raise DataError(f"{path}: not a regular file: copy its content to one")
