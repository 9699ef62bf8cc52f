"""Getting a corpus: sources in order, hashes, own files, with a real server that misbehaves on demand.

A corpus that is here already is kept without contacting the network, and nothing replaces it unasked.
"""

import contextlib
import errno
import gzip
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pooch
import pytest
from ruamel.yaml import YAML

from seqlm.core.errors import MachineError
from seqlm.core.files import read_json
from seqlm.pipeline.download import corpora
from smoke import ROOT, SMALL, change_params
from stages_by_hand import Finished, RunStage, refused, succeeded
from workspace import Workspace

TEXT = b"The tide went out, and the tide came in.\n" * 50
WAVES = b"Nobody counts the waves.\n" * 80
PAGE = b"<!DOCTYPE html><html><body>Please sign in</body></html>"
WRONG = TEXT[:-1] + b"?"  # as long as the right one
DIGEST = hashlib.sha256(TEXT).hexdigest()


BODIES = {"tide": TEXT, "waves": WAVES, "page": PAGE, "wrong": WRONG, "truncated": TEXT[:100]}


class Handler(BaseHTTPRequestHandler):
    """Answers by the path that is asked for, which the server notes."""

    server: "TextServer"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        fault = self.path.strip("/")
        self.server.asked.append(fault)
        if fault == "reset":
            self.connection.shutdown(2)
        elif fault == "silent":
            time.sleep(1)
        else:
            body = BODIES.get(fault, b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(TEXT if fault == "truncated" else body)))
            self.end_headers()
            self.wfile.write(body)


class TextServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def register(self, folder: Path, faults: tuple[str, ...] = ("tide",)) -> None:
        """Add the corpora tide, with one URL for each fault, and waves to the registry of the project in ``folder``."""
        base, path = f"http://127.0.0.1:{self.server_port}", folder / "data" / "corpora.yaml"
        registry = YAML(typ="safe").load(path)
        for name, text, urls in (("tide", TEXT, faults), ("waves", WAVES, ("waves",))):
            registry["corpora"][name] = {
                "file": f"{name}.txt", "urls": [f"{base}/{url}" for url in urls], "bytes": len(text),
                "sha256": hashlib.sha256(text).hexdigest(), "line_separator": "", "licence": "CC0-1.0",
                "description": name,
            }  # fmt: skip
        YAML().dump(registry, path)


class Download:
    """The download stage by hand, in a folder of its own, without the machine's own sources."""

    def __init__(self, run_stage: RunStage, folder: Path, server: TextServer) -> None:
        self.run_stage, self.folder, self.server = run_stage, folder, server
        self.path = folder / "data/raw/corpus.txt"

    def __call__(self, *faults: str, corpus: str = "tide", fallback: str | None = None, **environment: str) -> Finished:
        self.server.register(self.folder, faults or ("tide",))
        change_params(self.folder / "params.yaml", {"download.corpus": corpus, "download.fallback": fallback})
        own = {"XDG_CACHE_HOME": str(self.folder / "cache"), "SEQLM_DATA_DIR": "", "NO_PROXY": "*", "no_proxy": "*"}
        return self.run_stage("download", **own | environment)

    @property
    def text(self) -> bytes:
        return self.path.read_bytes()

    @property
    def record(self) -> dict[str, Any]:
        return read_json(self.folder / "reports/download/summary.json")

    def leftovers(self) -> set[str]:
        found = [path for root in ("data/raw", "cache") for path in (self.folder / root).rglob("*") if path.is_file()]
        return {path.name for path in found} - {"corpus.txt", "tide.txt"}


@pytest.fixture
def server() -> Iterator[TextServer]:
    with contextlib.closing(TextServer()) as server:
        yield server


@pytest.fixture
def download(run_stage: RunStage, tmp_path: Path, server: TextServer) -> Download:
    return Download(run_stage, tmp_path, server)


def test_the_first_url_that_answers_is_used_and_cached(download: Download, server: TextServer) -> None:
    succeeded(download("missing", "tide"))
    record = download.record
    assert (download.text, record["sha256"]) == (TEXT, DIGEST)
    assert server.asked == ["missing", "tide"]  # a 404 is not tried again
    download.path.unlink()
    succeeded(download("missing", "tide"))
    assert server.asked == ["missing", "tide"]  # the cache answered
    assert download.record == record  # and the source leaves no trace


def test_the_data_folder_comes_before_the_network(download: Download, server: TextServer, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "tide.txt").write_bytes(TEXT)
    succeeded(download(SEQLM_DATA_DIR=str(own)))
    assert server.asked == []
    download.path.unlink()
    for wrong in (PAGE, WRONG):
        (own / "tide.txt").write_bytes(wrong)
        result = download(fallback="sample", SEQLM_DATA_DIR=str(own))
        assert result.returncode == 3
        for part in (str(own / "tide.txt"), DIGEST, hashlib.sha256(wrong).hexdigest()):
            assert part in result.stderr


@pytest.mark.parametrize("fault", ["missing", "reset", "truncated", "silent"])
def test_an_unreachable_corpus_ends_or_falls_back(
    fault: str, download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "_TIMEOUT_S", 0.3)
    download.path.parent.mkdir()
    download.path.write_text("old")
    result = download(fault)
    assert result.returncode == 4, result.stderr
    assert f"/{fault}: cannot be fetched" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: tide: no source is reachable")
    assert (download.text, download.leftovers()) == (b"old", set())
    download.path.unlink()
    result = download(fault, fallback="sample")
    assert (result.returncode, download.record["name"]) == (0, "sample")


@pytest.mark.parametrize("fault", ["page", "wrong"])
def test_wrong_bytes_never_fall_back(fault: str, download: Download) -> None:
    result = download(fault, "missing", fallback="sample")
    assert result.returncode == 3, result.stderr
    assert DIGEST in result.stderr.splitlines()[-1]
    assert not download.path.parent.exists()
    assert download.leftovers() == set()
    succeeded(download(fault, "tide"))  # the next source may have the right ones


def test_own_text_is_read_plain_or_packed_and_again_when_it_changed(download: Download, tmp_path: Path) -> None:
    packed, outside = gzip.compress(WAVES), tmp_path / "elsewhere" / "my.txt"
    outside.parent.mkdir()
    (tmp_path / "link.txt").symlink_to(outside)
    # The first bytes say whether a file is packed, not its name.
    for name, text, content in (
        ("my.txt", TEXT, TEXT), ("my.txt.gz", WAVES, packed), ("my.txt", WAVES, WAVES), ("my.txt.GZ", WAVES, packed),
        ("other.txt", WAVES, packed), ("plain.gz", TEXT, TEXT), (str(outside), TEXT, TEXT), ("link.txt", WAVES, WAVES),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        succeeded(download(corpus=name))
        assert (download.text, download.record["name"]) == (text, Path(name).name)
        assert download.record["sha256"] == hashlib.sha256(text).hexdigest()
        # What is outside is not written, and no path of the machine enters the tracked files.
        assert (tmp_path / name).read_bytes() == content
        assert not download.path.is_symlink()
        assert str(tmp_path) not in json.dumps(download.record)


def test_own_text_that_cannot_be_used_is_named(download: Download, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "half.txt.gz").write_bytes(gzip.compress(TEXT)[:-20])
    (tmp_path / "no.txt.gz").write_bytes(b"\x1f\x8bplain text")
    (tmp_path / "nowhere.txt").symlink_to("gone.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    for name, code, complaint in (
        ("empty.txt", 3, "empty"),
        ("half.txt.gz", 3, "not a complete packed file"),
        ("no.txt.gz", 3, "not a complete packed file"),
        ("nowhere.txt", 3, "no such file"),
        ("pipe.txt", 3, "not a regular file"),
        ("data", 3, "not a regular file"),
        ("nothing.txt", 2, "neither a registered corpus (time_machine, tiny_shakespeare, sample, "),
    ):
        refused(download(corpus=name), code, complaint)
        assert not download.path.exists()


def test_only_a_text_with_the_right_hash_is_kept(download: Download, server: TextServer) -> None:
    succeeded(download())
    record = download.record
    shutil.rmtree(download.folder / "cache")
    for fallback in ("sample", None):
        succeeded(download(fallback=fallback))
        assert (download.text, download.record) == (TEXT, record)
    assert server.asked == ["tide"]
    # Another setting gets the other text, and a changed one goes.
    succeeded(download(corpus="waves"))
    assert (download.text, download.record["name"]) == (WAVES, "waves")
    download.path.write_bytes(WAVES[:-1])
    succeeded(download(corpus="waves"))
    assert download.text == WAVES
    assert server.asked == ["tide", "waves"]  # the cache answered


def test_without_a_network_the_sample_replaces_no_other_text(download: Download, server: TextServer) -> None:
    succeeded(download())
    record = download.record
    server.close()
    result = download(corpus="waves", fallback="sample")
    assert result.returncode == 4
    assert "corpus.txt holds another text, which 'sample' does not replace" in result.stderr.splitlines()[-1]
    # Neither lost nor taken for the one that was asked for.
    assert (download.text, download.record) == (TEXT, record)
    download.path.unlink()
    succeeded(download(corpus="waves", fallback="sample"))
    assert (download.record["name"], download.record["requested"]) == ("sample", "waves")


def test_the_fallback_stays_until_the_network_is_back(download: Download, server: TextServer) -> None:
    server.close()
    for corpus in ("tide", "tide", "waves"):
        result = download(corpus=corpus, fallback="sample")
        assert result.returncode == 0, result.stderr
        # What happened, and how to get the corpus.
        assert f"NO SOURCE OF {corpus} CAN BE REACHED" in result.stderr
        assert f"or put {corpus}.txt into data" in result.stderr
        assert download.text == (ROOT / "data/sample.txt").read_bytes()
        assert [download.record[key] for key in ("name", "requested", "fallback")] == ["sample", corpus, True]
    with contextlib.closing(TextServer()) as download.server:
        succeeded(download(fallback="sample"))
    assert (download.text, download.record["fallback"]) == (TEXT, False)


def test_a_full_disk_is_no_network_that_fails(download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pooch, "retrieve", fill)
    refused(download("tide", "waves", fallback="sample"), 5, "No space left on device")
    assert not download.path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_not_the_fault_of_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpora, "atomic_write", lambda _: contextlib.nullcontext(Path("/dev/full")))
    (tmp_path / "my.txt").write_bytes(TEXT * (2**21 // len(TEXT)))
    with pytest.raises(MachineError, match=r"corpus\.txt: cannot be written: No space left"):
        corpora.copy_text_file(tmp_path / "my.txt", tmp_path / "corpus.txt")


@pytest.mark.slow
def test_a_run_without_a_network_changes_nothing(tmp_path: Path, server: TextServer) -> None:
    workspace = Workspace(tmp_path)
    workspace.environment |= {"NO_PROXY": "*", "no_proxy": "*"}
    server.register(workspace.folder)
    workspace.begin(SMALL | {"download.corpus": "tide"})
    workspace.run("dvc", "repro", "preprocess")
    workspace.commit("A run with a network")
    server.shutdown()
    shutil.rmtree(tmp_path / "cache")
    for fallback in ("sample", None):
        workspace.update_params({"download.fallback": fallback})
        ran = workspace.run("dvc", "repro", "preprocess").stdout
        assert "Running stage 'download'" in ran
        assert "Running stage 'preprocess'" not in ran
    # Another corpus cannot be had, and the one that is here stays.
    workspace.update_params({"download.corpus": "waves"})
    assert workspace.run("dvc", "repro", "preprocess", check=False).returncode != 0
    assert (workspace.folder / "data/raw/corpus.txt").read_bytes() == TEXT
