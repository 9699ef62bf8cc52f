"""Getting a corpus: sources in order, hashes, own files, with a real server that misbehaves."""

import gzip
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seqlm.download import corpora
from stages_by_hand import RunStage, refused, succeeded
from text_server import PAGE, TEXT, WAVES, Download, TextServer

DIGEST = hashlib.sha256(TEXT).hexdigest()


def test_the_first_url_that_answers_is_used_and_cached(download: Download, server: TextServer) -> None:
    succeeded(download("missing", "tide"))
    assert download.text == TEXT
    assert server.asked == ["missing", "tide"]  # a 404 is not tried again
    assert download.record["sha256"] == DIGEST
    record = download.record
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
    (own / "tide.txt").write_bytes(PAGE)
    download.path.unlink()
    result = download(fallback="sample", SEQLM_DATA_DIR=str(own))
    assert result.returncode == 3
    for part in (str(own / "tide.txt"), DIGEST, hashlib.sha256(PAGE).hexdigest()):
        assert part in result.stderr


@pytest.mark.parametrize("fault", ["missing", "reset", "truncated", "silent", "busy"])
def test_an_unreachable_corpus_ends_with_code_4_or_falls_back(
    fault: str, download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "_TIMEOUT_S", 0.3)
    download.path.parent.mkdir()
    download.path.write_text("old")
    result = download(fault)
    assert result.returncode == 4, result.stderr
    assert f"/{fault}: cannot be fetched" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: tide: no source can be reached")
    assert (download.text, download.leftovers()) == (b"old", [])
    download.path.unlink()
    result = download(fault, fallback="sample")
    assert result.returncode == 0
    assert "NO SOURCE OF tide CAN BE REACHED" in result.stderr
    assert [download.record[key] for key in ("name", "requested", "fallback")] == ["sample", "tide", True]
    succeeded(download("tide", fallback="sample"))
    assert download.text == TEXT  # the real text comes back with the network


@pytest.mark.parametrize("fault", ["page", "wrong"])
def test_wrong_bytes_never_fall_back(fault: str, download: Download) -> None:
    result = download(fault, "missing", fallback="sample")
    assert result.returncode == 3, result.stderr
    assert DIGEST in result.stderr.splitlines()[-1]
    assert not download.path.parent.exists()
    assert download.leftovers() == []
    succeeded(download(fault, "tide"))  # the next source may have the right ones


def test_two_downloads_at_once_leave_one_whole_file(download: Download, run_script: RunStage) -> None:
    succeeded(download())
    with ThreadPoolExecutor() as threads:
        results = threads.map(lambda cache: run_script("download", **download.environment(cache)), ("cache1", "cache2"))
    assert [result.returncode for result in results] == [0, 0]
    assert (download.text, download.leftovers()) == (TEXT, [])


def test_own_text_is_read_plain_or_packed_and_again_when_it_changed(download: Download, tmp_path: Path) -> None:
    packed = gzip.compress(WAVES)
    # The first bytes say whether a file is packed, not its name.
    for name, text, content in (
        ("my.txt", TEXT, TEXT), ("my.txt.gz", WAVES, packed), ("my.txt", WAVES, WAVES), ("my.txt.GZ", WAVES, packed),
        ("other.txt", WAVES, packed), ("plain.gz", TEXT, TEXT),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        succeeded(download(corpus=name))
        assert (download.text, download.record["name"]) == (text, name)
        assert download.record["sha256"] == hashlib.sha256(text).hexdigest()


def test_own_text_outside_the_project_is_read_and_never_written(download: Download, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "my.txt").write_bytes(TEXT)
    (outside / "my.txt").chmod(0o444)
    (tmp_path / "link.txt").symlink_to(outside / "my.txt")
    for name in (str(outside / "my.txt"), "elsewhere/../elsewhere/my.txt", "link.txt"):
        succeeded(download(corpus=name))
        assert download.text == TEXT
        # No path of the machine enters the tracked files.
        assert str(tmp_path) not in json.dumps(download.record)
    assert [path.name for path in outside.iterdir()] == ["my.txt"]
    assert (outside / "my.txt").read_bytes() == TEXT
    assert not download.path.is_symlink()


def test_own_text_that_cannot_be_used_is_named(download: Download, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "half.txt.gz").write_bytes(gzip.compress(TEXT)[:-20])
    (tmp_path / "no.txt.gz").write_bytes(b"\x1f\x8bplain text")
    (tmp_path / "nowhere.txt").symlink_to("gone.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    for name, code, complaint in (
        ("empty.txt", 3, "empty"),
        ("half.txt.gz", 3, "not a complete gzip file"),
        ("no.txt.gz", 3, "not a complete gzip file"),
        ("nowhere.txt", 3, "no such file"),
        ("pipe.txt", 3, "not a regular file"),
        ("data", 3, "not a regular file"),
        ("nothing.txt", 2, "neither a registered corpus (time_machine, tiny_shakespeare, sample, "),
    ):
        refused(download(corpus=name), code, complaint)
        assert not download.path.exists()
