"""Fetches one file over HTTP, verified, in bounded time and size.

pooch keeps the cache and writes whole files. It calls the :class:`Downloader` here for the
transfer, because pooch's own gives up neither on a server that drips nor on one that never
ends, and does not tell a full disk from a broken connection.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
import urllib3

from seqlm.core.errors import DataError, NetworkError
from seqlm.core.files import write_errors
from seqlm.core.text import quantity
from seqlm.download.settings import Limits

_RETRIED_STATUS = frozenset({429, 500, 502, 503, 504})
_MAX_TRIES = 3
_READ_BYTES = 1 << 16
_HTML_MARKS = (b"<!doctype html", b"<html")


def fetch(url: str, folder: Path, file_name: str, sha256: str, limits: Limits) -> Path:
    """Return the path in ``folder`` of the file with this hash; it is fetched from ``url`` if it is missing.

    Raises NetworkError if the source cannot be reached or breaks off, DataError if it sends
    bytes with another hash, and MachineError if the folder cannot be written.
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
        with _SafeSession() as session:
            response = self._get(session, url, deadline)
            if not response.ok:
                raise NetworkError(f"{url}: HTTP {response.status_code} {response.reason}")
            self._receive(url, response, Path(getattr(output_file, "name", output_file)), deadline)

    def _get(self, session: requests.Session, url: str, deadline: float) -> requests.Response:
        """Return the first response that is not a request to try again, or the last one before the deadline."""
        for attempt in range(1, _MAX_TRIES + 1):
            with _network_errors(url):
                response = session.get(url, stream=True, timeout=self._limits.timeout_s)
            value = response.headers.get("Retry-After", "")
            wait = float(value) if value.isdigit() else 0.5
            if response.status_code not in _RETRIED_STATUS or time.monotonic() + wait > deadline:
                break
            if attempt < _MAX_TRIES:
                time.sleep(wait)
        return response

    def _receive(self, url: str, response: requests.Response, target: Path, deadline: float) -> None:
        digest, head, received = hashlib.sha256(), b"", 0
        with write_errors(target.parent), target.open("wb") as file:
            for block in self._blocks(url, response, deadline):
                head = head or block
                digest.update(block)
                received += file.write(block)
        promised = response.headers.get("Content-Length", "")
        if promised.isdigit() and "Content-Encoding" not in response.headers and received < int(promised):
            raise NetworkError(f"{url}: broke off after {received} of {promised} bytes")
        if digest.hexdigest() != self._sha256:
            raise wrong_hash(url, self._sha256, digest.hexdigest(), head)

    def _blocks(self, url: str, response: requests.Response, deadline: float) -> Iterator[bytes]:
        received = 0
        while True:
            with _network_errors(url):
                # read1 returns what has arrived; read would wait for a whole block, however slowly it drips.
                block = response.raw.read1(_READ_BYTES, decode_content=True)
            if not block:
                return
            received += len(block)
            if received > self._limits.max_bytes:
                raise DataError(f"{url}: sends more than the expected {quantity(self._limits.max_bytes, 'byte')}")
            if time.monotonic() > deadline:
                raise NetworkError(f"{url}: not finished after {self._limits.deadline_s:g} seconds")
            yield block


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
            raise NetworkError(f"{resp.url}: redirects from https to http: refused")
        return target


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    """Turn errors of the network into a NetworkError with a short reason: theirs spell out objects and addresses."""
    try:
        yield
    except requests.Timeout as error:
        raise NetworkError(f"{url}: no answer in time") from error
    except requests.exceptions.SSLError as error:
        raise NetworkError(f"{url}: its certificate cannot be verified") from error
    except requests.ConnectionError as error:
        raise NetworkError(f"{url}: cannot be reached") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise NetworkError(f"{url}: the transfer broke off ({type(error).__name__})") from error
