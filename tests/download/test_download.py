"""Bringing a corpus: sources in order, hashes, own files, against a real server that misbehaves."""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stages_by_hand import RunStage

TEXT = b"The tide went out, and the tide came in.\n" * 50
DIGEST = hashlib.sha256(TEXT).hexdigest()
PAGE = b"<!DOCTYPE html><html><body>Please sign in</body></html>"


class Misbehaving(BaseHTTPRequestHandler):
    """Answers by the path that is asked for, and counts what was asked."""

    asked: list[str]

    def log_message(self, *arguments: object) -> None:
        pass

    def send(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        fault = self.path.strip("/")
        self.server.asked.append(fault)
        times = self.server.asked.count(fault)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, f"fault_{fault}")(times)

    def fault_none(self, _times: int) -> None:
        self.send(200, TEXT)

    def fault_missing(self, _times: int) -> None:
        self.send(404)

    def fault_once_broken(self, times: int) -> None:
        self.send(*((500,) if times == 1 else (200, TEXT)))

    def fault_busy(self, times: int) -> None:
        self.send(429, Retry_After="1") if times == 1 else self.send(200, TEXT)

    def fault_reset(self, _times: int) -> None:
        self.connection.shutdown(2)

    def fault_truncated(self, _times: int) -> None:
        self.send(200, TEXT[:100], length=len(TEXT))

    def fault_drip(self, _times: int) -> None:
        self.send(200, length=len(TEXT))
        for byte in TEXT:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.2)

    def fault_page(self, _times: int) -> None:
        self.send(200, PAGE)

    def fault_wrong(self, _times: int) -> None:
        self.send(200, TEXT[:-1] + b"?")

    def fault_endless(self, _times: int) -> None:
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 65536)

    def fault_insecure(self, _times: int) -> None:
        # The plain server that the test started beside the one with TLS.
        self.send(302, Location=f"http://127.0.0.1:{self.server.plain_port}/none")

    def fault_silent(self, _times: int) -> None:
        time.sleep(3)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    found = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    found.asked = []
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()


class Download:
    """The stage by hand, with a registry of one corpus."""

    def __init__(self, run_stage: RunStage, folder: Path, base: str) -> None:
        self.run_stage, self.folder, self.base = run_stage, folder, base

    def __call__(self, *faults: str, fallback: str | None = None, corpus: str = "tide", **environment: str) -> Any:
        registry = YAML(typ="safe").load(self.folder / "data/corpora.yaml")
        registry["corpora"]["tide"] = {
            "file": "tide.txt", "urls": [f"{self.base}/{fault}" for fault in faults], "sha256": DIGEST,
            "bytes": len(TEXT), "licence": "CC0-1.0", "description": "tides",
        }  # fmt: skip
        self._write("data/corpora.yaml", registry)
        params = YAML(typ="safe", pure=True).load(self.folder / "params.yaml")
        changes = {"corpus": corpus, "fallback": fallback, "timeout_s": 1.0, "deadline_s": 2.5}
        self._write("params.yaml", params | {"download": params["download"] | changes})
        environment = {
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "SEQLM_DATA_DIR": "",
            "NO_PROXY": "*",
        } | environment
        return self.run_stage("download", **environment)

    def _write(self, name: str, value: object) -> None:
        with (self.folder / name).open("w") as file:
            YAML().dump(value, file)

    @property
    def text(self) -> bytes:
        return (self.folder / "data/raw/corpus.txt").read_bytes()

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "reports/download/summary.json").read_text())
        return found

    def leftovers(self) -> list[str]:
        """Return files that are neither a result nor a cached corpus."""
        found = [path for root in ("data/raw", "cache") for path in (self.folder / root).rglob("*") if path.is_file()]
        return sorted(path.name for path in found if path.name not in ("corpus.txt", "tide.txt"))


@pytest.fixture
def download(run_stage: RunStage, tmp_path: Path, server: ThreadingHTTPServer) -> Download:
    return Download(run_stage, tmp_path, f"http://127.0.0.1:{server.server_port}")


def test_the_first_url_that_answers_is_taken_and_kept(download: Download, server: ThreadingHTTPServer) -> None:
    assert download("missing", "none").returncode == 0
    assert download.text == TEXT
    assert server.asked == ["missing", "none"]  # a 404 is not tried again
    assert download.record["sha256"] == DIGEST
    record = download.record
    (download.folder / "data/raw/corpus.txt").unlink()
    assert download("missing", "none").returncode == 0
    assert server.asked == ["missing", "none"]  # the cache answered
    assert download.record == record  # and the source leaves no trace


def test_the_data_folder_comes_before_the_network(
    download: Download, server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/tide.txt").write_bytes(TEXT)
    assert download("none", SEQLM_DATA_DIR=str(tmp_path / "own")).returncode == 0
    assert server.asked == []
    (tmp_path / "own/tide.txt").write_bytes(PAGE)
    (tmp_path / "data/raw/corpus.txt").unlink()
    result = download("none", fallback="sample", SEQLM_DATA_DIR=str(tmp_path / "own"))
    assert result.returncode == 3
    assert "a web page (HTML) instead of the text" in result.stderr
    assert DIGEST in result.stderr
    assert hashlib.sha256(PAGE).hexdigest() in result.stderr


@pytest.mark.parametrize("fault", ["once_broken", "busy"])
def test_a_server_that_is_busy_is_asked_again(fault: str, download: Download, server: ThreadingHTTPServer) -> None:
    assert download(fault).returncode == 0
    assert server.asked == [fault, fault]
    assert download.text == TEXT


UNREACHABLE = {
    "missing": "HTTP 404", "reset": "cannot be reached", "truncated": "broke off", "drip": "not finished after 2.5",
    "silent": "no answer in time",
}  # fmt: skip


@pytest.mark.parametrize("fault", UNREACHABLE)
def test_what_cannot_be_reached_ends_with_code_4_or_falls_back(fault: str, download: Download) -> None:
    (download.folder / "data/raw").mkdir()
    (download.folder / "data/raw/corpus.txt").write_text("old")
    result = download(fault)
    assert result.returncode == 4, result.stderr
    assert UNREACHABLE[fault] in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: tide: no source can be reached")
    assert download.text == b"old"
    assert download.leftovers() == []
    (download.folder / "data/raw/corpus.txt").unlink()
    result = download(fault, fallback="sample")
    assert result.returncode == 0
    assert "NO SOURCE OF tide CAN BE REACHED" in result.stderr
    assert (download.record["name"], download.record["requested"]) == ("sample", "tide")
    assert download.record["fallback"] is True
    assert download("none", fallback="sample").returncode == 0
    assert download.text == TEXT  # the real text comes back with the network


WRONG = {"page": "a web page (HTML)", "wrong": "not the expected text", "endless": "more than the expected 2,050 bytes"}


@pytest.mark.parametrize("fault", WRONG)
def test_other_bytes_never_fall_back(fault: str, download: Download) -> None:
    result = download(fault, "missing", fallback="sample")
    assert result.returncode == 3, result.stderr
    assert WRONG[fault] in result.stderr.splitlines()[-1]
    if fault != "endless":
        assert DIGEST in result.stderr
    assert not (download.folder / "data/raw").exists()
    assert download.leftovers() == []
    assert download(fault, "none").returncode == 0  # the next source may have the right ones


def test_a_redirect_from_https_to_http_is_refused(
    download: Download, server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the server's certificate, is missing")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    secure = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    secure.asked, secure.plain_port, secure.daemon_threads = [], server.server_port, True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=secure.serve_forever, daemon=True).start()
    download.base = f"https://127.0.0.1:{secure.server_port}"
    trusting = {"REQUESTS_CA_BUNDLE": str(certificate)}
    result = download("insecure", **trusting)
    assert result.returncode == 4, result.stderr
    assert "redirects from https to http: refused" in result.stderr
    assert (secure.asked, server.asked) == (["insecure"], [])
    assert not (tmp_path / "data/raw").exists()
    assert download("none", **trusting).returncode == 0  # the certificate was not what it refused
    (tmp_path / "data/raw/corpus.txt").unlink()
    assert "its certificate cannot be verified" in download("none", **{"XDG_CACHE_HOME": str(tmp_path / "x")}).stderr
    secure.shutdown()


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_no_network_at_all_ends_with_code_4_or_falls_back(address: str, download: Download) -> None:
    download.base = address
    result = download("none", "none")
    assert result.returncode == 4, result.stderr
    assert "cannot be reached" in result.stderr
    assert download.leftovers() == []
    assert download("none", fallback="sample").returncode == 0
    assert download.record["name"] == "sample"


def test_two_downloads_at_once_leave_one_whole_file(download: Download, run_script: RunStage) -> None:
    assert download("none").returncode == 0
    results: list[Any] = []

    def again(cache: str) -> None:
        environment = {"XDG_CACHE_HOME": str(download.folder / cache), "SEQLM_DATA_DIR": "", "NO_PROXY": "*"}
        results.append(run_script("download", **environment))

    threads = [threading.Thread(target=again, args=[cache]) for cache in ("cache1", "cache2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.returncode for result in results] == [0, 0]
    assert download.text == TEXT
    assert download.leftovers() == []


def test_own_text_comes_plain_or_packed(download: Download, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_bytes(TEXT)
    assert download(corpus="my.txt").returncode == 0
    assert (download.text, download.record["name"]) == (TEXT, "my.txt")
    (tmp_path / "my.txt.gz").write_bytes(gzip.compress(TEXT))
    assert download(corpus="my.txt.gz").returncode == 0
    assert (download.text, download.record["sha256"]) == (TEXT, DIGEST)


def test_own_text_outside_the_project_is_read_and_never_written(download: Download, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "my.txt").write_bytes(TEXT)
    (outside / "my.txt").chmod(0o444)
    (tmp_path / "link.txt").symlink_to(outside / "my.txt")
    for name in (str(outside / "my.txt"), "elsewhere/../elsewhere/my.txt", "link.txt"):
        assert download(corpus=name).returncode == 0
        assert download.text == TEXT
        # No path of the machine enters what is tracked.
        assert str(tmp_path) not in json.dumps(download.record)
    assert [path.name for path in outside.iterdir()] == ["my.txt"]
    assert (outside / "my.txt").read_bytes() == TEXT
    assert not (tmp_path / "data/raw/corpus.txt").is_symlink()


def test_own_text_that_cannot_be_taken_is_named(download: Download, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "half.txt.gz").write_bytes(gzip.compress(TEXT)[:-20])
    (tmp_path / "no.txt.gz").write_bytes(b"plain text")
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a" * 5_000_000))
    (tmp_path / "nowhere.txt").symlink_to("gone.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("max_bytes: 10_000_000_000", "max_bytes: 1_000_000"))
    for name, code, complaint in (
        ("empty.txt", 3, "empty"),
        ("half.txt.gz", 3, "not a whole gzip file"),
        ("no.txt.gz", 3, "not a whole gzip file"),
        ("bomb.txt.gz", 3, "more than 1,000,000 bytes unpacked"),
        ("nowhere.txt", 3, "a link to nowhere"),
        ("pipe.txt", 3, "not a regular file"),
        ("data", 3, "a folder, not a text file"),
        ("nothing.txt", 2, "neither a registered corpus (time_machine, tiny_shakespeare, sample, tide) nor a file"),
    ):
        result = download(corpus=name)
        assert result.returncode == code, (name, result.stderr)
        assert complaint in result.stderr
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "data/raw/corpus.txt").exists()
