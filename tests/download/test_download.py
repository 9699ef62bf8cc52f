"""Getting a corpus: sources in order, hashes, own files, with a real server that misbehaves."""

import gzip
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from stages_by_hand import RunStage
from text_server import PAGE, TEXT, Download, TextServer

DIGEST = hashlib.sha256(TEXT).hexdigest()


def test_the_first_url_that_answers_is_used_and_cached(download: Download, server: TextServer) -> None:
    assert download("missing", "tide").returncode == 0
    assert download.text == TEXT
    assert server.asked == ["missing", "tide"]  # a 404 is not tried again
    assert download.record["sha256"] == DIGEST
    record = download.record
    download.path.unlink()
    assert download("missing", "tide").returncode == 0
    assert server.asked == ["missing", "tide"]  # the cache answered
    assert download.record == record  # and the source leaves no trace


def test_the_data_folder_comes_before_the_network(download: Download, server: TextServer, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/tide.txt").write_bytes(TEXT)
    assert download(SEQLM_DATA_DIR=str(tmp_path / "own")).returncode == 0
    assert server.asked == []
    (tmp_path / "own/tide.txt").write_bytes(PAGE)
    download.path.unlink()
    result = download(fallback="sample", SEQLM_DATA_DIR=str(tmp_path / "own"))
    assert result.returncode == 3
    assert "a web page (HTML) instead of the text" in result.stderr
    assert DIGEST in result.stderr
    assert hashlib.sha256(PAGE).hexdigest() in result.stderr


@pytest.mark.parametrize("fault", ["once_broken", "busy"])
def test_a_busy_server_is_asked_again(fault: str, download: Download, server: TextServer) -> None:
    assert download(fault).returncode == 0
    assert server.asked == [fault, fault]
    assert download.text == TEXT


UNREACHABLE = {
    "missing": "HTTP 404", "reset": "cannot be reached", "truncated": "broke off", "drip": "not finished after 2.5",
    "silent": "no answer in time", "busy_for_long": "HTTP 503",
}  # fmt: skip


@pytest.mark.parametrize("fault", UNREACHABLE)
def test_an_unreachable_corpus_ends_with_code_4_or_falls_back(fault: str, download: Download) -> None:
    download.path.parent.mkdir()
    download.path.write_text("old")
    result = download(fault)
    assert result.returncode == 4, result.stderr
    assert UNREACHABLE[fault] in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: tide: no source can be reached")
    assert download.text == b"old"
    assert download.leftovers() == []
    download.path.unlink()
    result = download(fault, fallback="sample")
    assert result.returncode == 0
    assert "NO SOURCE OF tide CAN BE REACHED" in result.stderr
    assert (download.record["name"], download.record["requested"]) == ("sample", "tide")
    assert download.record["fallback"] is True
    assert download("tide", fallback="sample").returncode == 0
    assert download.text == TEXT  # the real text comes back with the network


WRONG = {"page": "a web page (HTML)", "wrong": "not the expected text", "endless": "more than the expected 2,050 bytes"}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_bytes_never_fall_back(fault: str, download: Download) -> None:
    result = download(fault, "missing", fallback="sample")
    assert result.returncode == 3, result.stderr
    assert WRONG[fault] in result.stderr.splitlines()[-1]
    if fault != "endless":
        assert DIGEST in result.stderr
    assert not download.path.parent.exists()
    assert download.leftovers() == []
    assert download(fault, "tide").returncode == 0  # the next source may have the right ones


def test_a_redirect_from_https_to_http_is_refused(download: Download, server: TextServer, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the server's certificate, is missing")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    secure = TextServer()
    secure.plain_port = server.server_port
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    secure.start()
    download.base = f"https://127.0.0.1:{secure.server_port}"
    trusting = {"REQUESTS_CA_BUNDLE": str(certificate)}
    result = download("insecure", **trusting)
    assert result.returncode == 4, result.stderr
    assert "redirects from https to http: refused" in result.stderr
    assert (secure.asked, server.asked) == (["insecure"], [])
    assert not download.path.parent.exists()
    assert download("tide", **trusting).returncode == 0  # the certificate was not the reason
    download.path.unlink()
    assert "its certificate cannot be verified" in download("tide", XDG_CACHE_HOME=str(tmp_path / "x")).stderr
    secure.close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_no_network_at_all_ends_with_code_4_or_falls_back(address: str, download: Download) -> None:
    download.base = address
    result = download("tide", "tide")
    assert result.returncode == 4, result.stderr
    assert "cannot be reached" in result.stderr
    assert download.leftovers() == []
    assert download("tide", fallback="sample").returncode == 0
    assert download.record["name"] == "sample"


def test_two_downloads_at_once_leave_one_whole_file(download: Download, run_script: RunStage) -> None:
    assert download().returncode == 0
    results: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda cache=cache: results.append(run_script("download", **download.environment(cache)))
        )
        for cache in ("cache1", "cache2")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.returncode for result in results] == [0, 0]
    assert download.text == TEXT
    assert download.leftovers() == []


def test_own_text_is_read_plain_or_packed(download: Download, tmp_path: Path) -> None:
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
        # No path of the machine enters the tracked files.
        assert str(tmp_path) not in json.dumps(download.record)
    assert [path.name for path in outside.iterdir()] == ["my.txt"]
    assert (outside / "my.txt").read_bytes() == TEXT
    assert not download.path.is_symlink()


def test_own_text_that_cannot_be_used_is_named(download: Download, tmp_path: Path) -> None:
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
        ("half.txt.gz", 3, "not a complete gzip file"),
        ("no.txt.gz", 3, "not a complete gzip file"),
        ("bomb.txt.gz", 3, "more than 1,000,000 bytes unpacked"),
        ("nowhere.txt", 3, "a broken link"),
        ("pipe.txt", 3, "not a regular file"),
        ("data", 3, "a folder, not a text file"),
        ("nothing.txt", 2, "neither a registered corpus (time_machine, tiny_shakespeare, sample, tide, waves) nor a"),
    ):
        result = download(corpus=name)
        assert result.returncode == code, (name, result.stderr)
        assert complaint in result.stderr
        assert result.stderr.count("\n") == 1
        assert not download.path.exists()
