"""A corpus that is here already: it stays, without a look at the network, and nothing takes its place unasked."""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from smoke import ROOT, SMALL, change_params
from stages_by_hand import RunStage
from workspace import Workspace

TEXT = b"The tide went out, and the tide came in.\n" * 50
OTHER = b"Nobody counts the waves.\n" * 80
TEXTS = {"tide": TEXT, "waves": OTHER}


class Server:
    """Publishes the texts, and counts what is asked for; ``close`` is the end of the network."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(TEXTS[self.path.strip("/")])

            def log_message(self, *arguments: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def register(self, folder: Path) -> None:
        """Put the texts into the registry of the project in ``folder``."""
        path = folder / "data" / "corpora.yaml"
        registry = YAML(typ="safe").load(path)
        for name, text in TEXTS.items():
            registry["corpora"][name] = {
                "file": f"{name}.txt", "urls": [f"http://127.0.0.1:{self._http.server_port}/{name}"],
                "sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text), "licence": "CC0-1.0",
                "description": name,
            }  # fmt: skip
        with path.open("w") as file:
            YAML().dump(registry, file)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


class Download:
    """The stage by hand, in a folder of its own."""

    def __init__(self, run_stage: RunStage, folder: Path) -> None:
        self.run_stage, self.folder = run_stage, folder

    def __call__(self, corpus: str, fallback: str | None = "sample") -> subprocess.CompletedProcess[str]:
        settings = {"download.corpus": corpus, "download.fallback": fallback, "download.timeout_s": 1.0}
        change_params(self.folder / "params.yaml", settings)
        return self.run_stage(
            "download", SEQLM_DATA_DIR="", XDG_CACHE_HOME=str(self.folder / "cache"), NO_PROXY="*", no_proxy="*"
        )

    def forget(self) -> None:
        """Empty the cache, which a source that was reached once leaves outside of the project."""
        shutil.rmtree(self.folder / "cache")

    @property
    def text(self) -> bytes:
        return (self.folder / "data/raw/corpus.txt").read_bytes()

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "reports/download/summary.json").read_text())
        return found


@pytest.fixture
def download(run_stage: RunStage, tmp_path: Path, server: Server) -> Download:
    server.register(tmp_path)
    return Download(run_stage, tmp_path)


def test_a_text_with_the_right_hash_stays_and_nobody_is_asked(download: Download, server: Server) -> None:
    assert download("tide").returncode == 0
    assert server.asked == ["/tide"]
    record = download.record
    download.forget()
    assert download("tide").returncode == 0
    assert server.asked == ["/tide"]
    assert (download.text, download.record) == (TEXT, record)
    server.close()
    for fallback in ("sample", None):
        assert download("tide", fallback).returncode == 0
        assert (download.text, download.record) == (TEXT, record)


def test_another_setting_brings_the_other_text_and_a_changed_one_is_brought_again(
    download: Download, server: Server
) -> None:
    assert download("tide").returncode == 0
    assert download("waves").returncode == 0
    assert (download.text, download.record["name"]) == (OTHER, "waves")
    (download.folder / "data/raw/corpus.txt").write_bytes(OTHER[:-1])
    assert download("waves").returncode == 0
    assert download.text == OTHER
    assert server.asked == ["/tide", "/waves"]  # the cache answered


def test_without_a_network_the_sample_takes_no_other_texts_place(download: Download, server: Server) -> None:
    assert download("tide").returncode == 0
    record = download.record
    server.close()
    result = download("waves")
    assert result.returncode == 4
    assert "corpus.txt holds another text, which 'sample' does not replace" in result.stderr.splitlines()[-1]
    # Neither lost nor passed off as the one that was asked for.
    assert (download.text, download.record) == (TEXT, record)
    (download.folder / "data/raw/corpus.txt").unlink()
    assert download("waves").returncode == 0
    assert (download.record["name"], download.record["requested"]) == ("sample", "waves")


def test_what_stands_in_goes_on_standing_in_until_the_network_is_back(download: Download, server: Server) -> None:
    server.close()
    sample = (ROOT / "data/sample.txt").read_bytes()
    for corpus in ("tide", "tide", "waves"):
        result = download(corpus)
        assert result.returncode == 0, result.stderr
        assert f"NO SOURCE OF {corpus} CAN BE REACHED" in result.stderr
        assert (download.text, download.record["fallback"]) == (sample, True)
        assert download.record["requested"] == corpus
    again = Server()
    again.register(download.folder)
    assert download("tide").returncode == 0
    assert (download.text, download.record["fallback"]) == (TEXT, False)
    again.close()


def test_own_text_is_read_anew_when_it_changed(download: Download) -> None:
    own = download.folder / "my.txt"
    for text in (TEXT, OTHER):
        own.write_bytes(text)
        assert download("my.txt").returncode == 0
        assert download.text == text
        assert download.record["sha256"] == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("fallback", ["sample", None])
def test_a_disk_that_fills_up_is_not_a_network_that_fails(
    fallback: str | None, download: Download, tmp_path: Path, server: Server
) -> None:
    # No file may grow beyond 1,000 bytes: what is fetched, of 2,050, is refused in its middle. The sample would be too,
    # but with another source of the corpus there is one that might be asked, and nobody must be.
    change_params(tmp_path / "params.yaml", {"download.corpus": "tide", "download.fallback": fallback})

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = subprocess.run(
        [sys.executable, str(ROOT / "stages/download.py")],
        cwd=tmp_path,
        env=os.environ | {"SEQLM_DATA_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert result.returncode == 5, result.stderr
    assert result.stderr == f"error: {tmp_path / 'cache/seqlm'}: cannot be written: File too large\n"
    assert server.asked == ["/tide"]
    assert not list((tmp_path / "data").glob("raw/*"))
    assert not list((tmp_path / "cache").rglob("*.txt"))
    assert download("tide").returncode == 0  # with more room


def test_a_full_disk_is_not_a_network_that_fails(download: Download, tmp_path: Path, server: Server) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(cache)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this system does not allow to mount")
    try:
        (cache / "seqlm").mkdir()
        (cache / "filler").write_bytes(b"x" * 4096)
        result = download("tide")
        assert result.returncode == 5, result.stderr
        assert result.stderr == f"error: {cache / 'seqlm'}: cannot be written: No space left on device\n"
        assert server.asked == ["/tide"]
    finally:
        subprocess.run(["umount", "--lazy", str(cache)], check=True)


@pytest.mark.slow
def test_a_run_without_a_network_changes_nothing(tmp_path: Path, server: Server) -> None:
    workspace = Workspace(tmp_path / "project", tmp_path / "traces")
    workspace.environment |= {"NO_PROXY": "*", "no_proxy": "*"}
    server.register(workspace.folder)
    workspace.begin(SMALL | {"download.corpus": "tide"})
    workspace.run("dvc", "repro", "preprocess")
    workspace.commit("A run with a network")
    server.close()
    shutil.rmtree(tmp_path / "cache")
    for fallback in ("sample", None):
        workspace.update_params({"download.fallback": fallback})
        ran = workspace.run("dvc", "repro", "preprocess").stdout
        assert "Running stage 'download'" in ran
        assert "Running stage 'preprocess'" not in ran
    workspace.update_params({"download.fallback": "sample"})
    workspace.run("dvc", "repro", "preprocess")
    assert workspace.run("git", "status", "--porcelain").stdout == ""
    # Another corpus cannot come, and the one that is here stays.
    workspace.update_params({"download.corpus": "waves"})
    assert workspace.run("dvc", "repro", "preprocess", check=False).returncode != 0
    assert (workspace.folder / "data/raw/corpus.txt").read_bytes() == TEXT
    assert workspace.run("git", "status", "--porcelain").stdout == " M params.yaml\n"
