"""A corpus that is here already: it is kept without contacting the network, and nothing replaces it unasked."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smoke import ROOT, SMALL, change_params
from stages_by_hand import succeeded
from text_server import TEXT, WAVES, Download, TextServer
from workspace import Workspace


def test_a_text_with_the_right_hash_is_kept_and_no_source_is_asked(download: Download, server: TextServer) -> None:
    succeeded(download())
    assert server.asked == ["tide"]
    record = download.record
    shutil.rmtree(download.folder / "cache")
    succeeded(download())
    assert server.asked == ["tide"]
    assert (download.text, download.record) == (TEXT, record)
    server.shutdown()
    for fallback in ("sample", None):
        succeeded(download(fallback=fallback))
        assert (download.text, download.record) == (TEXT, record)


def test_another_setting_gets_the_other_text_and_a_changed_one_goes(download: Download, server: TextServer) -> None:
    succeeded(download())
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
    sample = (ROOT / "data/sample.txt").read_bytes()
    for corpus in ("tide", "tide", "waves"):
        result = download(corpus=corpus, fallback="sample")
        assert result.returncode == 0, result.stderr
        # What happened, how to get the corpus, and how to go back.
        *_, happened, advice = result.stderr.splitlines()
        assert happened == (
            f"warning: NO SOURCE OF {corpus} CAN BE REACHED: the corpus 'sample' takes its place ({corpus}: no source "
            f"can be reached: connect to the network, or put {corpus}.txt into data)"
        )
        assert f"Once {corpus} can be had, `dvc repro` makes its results; `make restore` goes back" in advice
        assert (download.text, download.record["fallback"]) == (sample, True)
        assert download.record["requested"] == corpus
    download.server = TextServer()
    download.server.start()
    succeeded(download(fallback="sample"))
    assert (download.text, download.record["fallback"]) == (TEXT, False)
    download.server.close()


def test_a_disk_that_fills_up_is_no_network_that_fails(download: Download, tmp_path: Path, server: TextServer) -> None:
    # No file may grow beyond 1,000 bytes, so the transfer of 2,050 is refused halfway. There is a second source, and
    # it must not be asked.
    server.register(tmp_path, faults=("tide", "busy"))
    change_params(tmp_path / "params.yaml", {"download.corpus": "tide", "download.fallback": "sample"})
    result = subprocess.run(
        [sys.executable, str(ROOT / "stages/download.py")],
        cwd=tmp_path, env=os.environ | download.environment(), capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert result.returncode == 5, result.stderr
    assert result.stderr == "error: File too large\n"
    assert server.asked == ["tide"]
    assert not list((tmp_path / "data").glob("raw/*"))
    assert not list((tmp_path / "cache").rglob("*.txt"))
    succeeded(download())  # with more room


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
    workspace.update_params({"download.fallback": "sample"})
    workspace.run("dvc", "repro", "preprocess")
    assert workspace.run("git", "status", "--porcelain").stdout == ""
    # Another corpus cannot be had, and the one that is here stays.
    workspace.update_params({"download.corpus": "waves"})
    assert workspace.run("dvc", "repro", "preprocess", check=False).returncode != 0
    assert (workspace.folder / "data/raw/corpus.txt").read_bytes() == TEXT
    # The stage configure has run, which checks the settings.
    assert workspace.run("git", "status", "--porcelain").stdout == " M dvc.lock\n M params.yaml\n"


@pytest.mark.slow
def test_restore_brings_back_what_the_sample_replaced(tmp_path: Path, server: TextServer) -> None:
    workspace = Workspace(tmp_path)
    workspace.environment |= {"NO_PROXY": "*", "no_proxy": "*"}
    server.register(workspace.folder)
    workspace.begin(SMALL | {"download.corpus": "tide", "download.fallback": "sample"})
    stages = ("preprocess", "vocab@char")
    workspace.run("dvc", "repro", *stages)
    workspace.commit("A run with a network")
    text, vocab = workspace.folder / "data/raw/corpus.txt", workspace.folder / "data/corpus/char/vocab.json"
    before = vocab.read_bytes()
    # The text and the cache of downloads are gone, as after `git clean`; DVC's cache is not.
    server.shutdown()
    shutil.rmtree(tmp_path / "cache")
    text.unlink()
    ran = workspace.run("dvc", "repro", *stages)
    assert "NO SOURCE OF tide CAN BE REACHED" in ran.stderr
    assert text.read_bytes() == (ROOT / "data/sample.txt").read_bytes()
    assert vocab.read_bytes() != before
    workspace.tool("restore.py")  # DVC finds nothing of the stages that never ran here, and ends with an error
    assert (text.read_bytes(), vocab.read_bytes()) == (TEXT, before)
    assert workspace.run("git", "status", "--porcelain").stdout == ""
    assert "Running stage 'vocab@char'" not in workspace.run("dvc", "repro", *stages).stdout
    assert workspace.run("git", "status", "--porcelain").stdout == ""
