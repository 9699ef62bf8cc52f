"""Brings one file over HTTP, verified, in bounded time and size.

pooch keeps the cache and writes files whole; the :class:`Downloader` here is what it
calls for the transfer, because pooch's own gives up neither on a server that drips nor
on one that never ends.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
import urllib3

from seqlm.core.errors import DataError, MachineError, NetworkError

_RETRIED_STATUS = frozenset({429, 500, 502, 503, 504})
_MAX_TRIES = 3
_READ_BYTES = 1 << 16
_HTML_MARKS = (b"<!doctype html", b"<html")


def looks_like_html(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a web page."""
    return head.lstrip().lower().startswith(_HTML_MARKS)


@dataclass(frozen=True)
class Limits:
    """How long and how much a transfer may take."""

    timeout_s: float
    """Longest silence, in seconds."""
    deadline_s: float
    """Longest transfer, retries included, in seconds."""
    max_bytes: int
    """Largest body, in bytes."""


def fetch(url: str, folder: Path, file_name: str, sha256: str, limits: Limits) -> Path:
    """Return the path in ``folder`` of the file with this hash, fetching it from ``url`` if it is not there.

    Raises NetworkError where the source cannot be reached or breaks off, DataError where it
    answers with other bytes than the hash asks for, and MachineError where the folder cannot
    be written.
    """
    pooch.get_logger().setLevel("ERROR")
    return Path(pooch.retrieve(url, f"sha256:{sha256}", file_name, folder, downloader=Downloader(sha256, limits)))


class Downloader:
    """A transfer that pooch can call: ``(url, output_file, pooch)``."""

    def __init__(self, sha256: str, limits: Limits) -> None:
        self._sha256 = sha256
        self._limits = limits

    def __call__(self, url: str, output_file: Any, _pooch: object) -> None:
        """Write the body of ``url`` to ``output_file``, a path or an open binary file; raises as :func:`fetch`."""
        deadline = time.monotonic() + self._limits.deadline_s
        for attempt in range(1, _MAX_TRIES + 1):
            wait = self._try(url, Path(getattr(output_file, "name", output_file)), deadline)
            if wait is None:
                return
            if attempt == _MAX_TRIES or time.monotonic() + wait > deadline:
                break
            time.sleep(wait)
        raise NetworkError(f"{url}: the server stays busy or broken (HTTP {self._last_status})")

    def _try(self, url: str, target: Path, deadline: float) -> float | None:
        """Transfer once. Return None when done, or the seconds to wait before another try."""
        with _SafeSession() as session:
            with _network_errors(url):
                response = session.get(url, stream=True, timeout=self._limits.timeout_s)
            if response.status_code in _RETRIED_STATUS:
                self._last_status = response.status_code
                return _retry_after(response)
            if not response.ok:
                raise NetworkError(f"{url}: HTTP {response.status_code} {response.reason}")
            self._receive(url, response, target, deadline)
        return None

    def _receive(self, url: str, response: requests.Response, target: Path, deadline: float) -> None:
        digest, head, received = hashlib.sha256(), b"", 0
        try:
            with target.open("wb") as file:
                for block in self._blocks(url, response, deadline):
                    head = head or block
                    digest.update(block)
                    received += file.write(block)
        except OSError as error:  # of the disk alone: those of the network come as NetworkError
            raise MachineError(f"{target.parent}: cannot be written: {error.strerror}") from error
        promised = response.headers.get("Content-Length", "")
        if promised.isdigit() and "Content-Encoding" not in response.headers and received < int(promised):
            raise NetworkError(f"{url}: broke off after {received} of {promised} bytes")
        if digest.hexdigest() != self._sha256:
            raise DataError(wrong_hash(url, self._sha256, digest.hexdigest(), head))

    def _blocks(self, url: str, response: requests.Response, deadline: float) -> Iterator[bytes]:
        received = 0
        while True:
            with _network_errors(url):
                # read1 returns what has come; read would wait for a whole block, however slowly it drips.
                block = response.raw.read1(_READ_BYTES, decode_content=True)
            if not block:
                return
            received += len(block)
            if received > self._limits.max_bytes:
                raise DataError(f"{url}: sends more than the {self._limits.max_bytes} bytes allowed")
            if time.monotonic() > deadline:
                raise NetworkError(f"{url}: not finished after {self._limits.deadline_s:g} seconds")
            yield block


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise NetworkError(f"{url}: {_reason(error)}") from error


def wrong_hash(where: str, expected: str, found: str, head: bytes) -> str:
    """Return the message for a file with another hash than the registry's."""
    what = "a web page (HTML) stands in place of the text" if looks_like_html(head) else "not the expected text"
    return f"{where}: {what}: SHA-256 expected {expected}, found {found}"


class _SafeSession(requests.Session):
    """Follows redirects, but never from https to http."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target and urlsplit(resp.url).scheme == "https" and urlsplit(target).scheme == "http":
            raise NetworkError(f"{resp.url}: redirects from https to http: refused")
        return target


def _retry_after(response: requests.Response) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 0.5


def _reason(error: Exception) -> str:
    """Return a short reason: the exceptions of requests spell out objects and addresses."""
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate cannot be verified"
    if isinstance(error, requests.ConnectionError):
        return "cannot be reached"
    return f"the transfer broke off ({type(error).__name__})"
