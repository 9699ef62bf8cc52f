"""The committed results are those of the committed lock file, and true to the book."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from ruamel.yaml import YAML

from book_settings import differences
from smoke import ROOT


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def md5_of_folder(folder: Path) -> str:
    """Return the hash that DVC gives to a folder: that of the list of its files and their hashes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    entries = [{"md5": md5(path), "relpath": path.relative_to(folder).as_posix()} for path in files]
    return hashlib.md5(json.dumps(entries).encode(), usedforsecurity=False).hexdigest() + ".dir"


def locked_reports() -> dict[str, str]:
    lock = YAML(typ="safe").load(ROOT / "dvc.lock")
    outs = {out["path"]: out["md5"] for stage in lock["stages"].values() for out in stage.get("outs", [])}
    return {path: digest for path, digest in outs.items() if path.startswith("reports/")}


def test_every_committed_report_is_the_one_in_the_lock_file() -> None:
    reports = locked_reports()
    assert {"reports/evaluate/metrics.json", "reports/book/parity.csv", "reports/index.html"} <= set(reports)
    for path, digest in reports.items():
        assert (md5_of_folder if digest.endswith(".dir") else md5)(ROOT / path) == digest, path


def test_no_report_is_left_from_another_run() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "reports").rglob("*") if path.is_file()}
    reports = locked_reports()
    folders = tuple(f"{path}/" for path, digest in reports.items() if digest.endswith(".dir"))
    assert {path for path in found if not path.endswith(".gitignore") and not path.startswith(folders)} == {
        path for path, digest in reports.items() if not digest.endswith(".dir")
    }


def test_every_value_of_the_book_is_met() -> None:
    # A branch on which an experiment was committed has other settings, and other values by right.
    if changed := differences(YAML(typ="safe", pure=True).load(ROOT / "params.yaml")):
        pytest.skip(f"not the settings of the chapter: {', '.join(changed)}")
    parity = pd.read_csv(ROOT / "reports/book/parity.csv")
    assert len(parity) >= 19
    assert parity["ok"].all(), parity[~parity["ok"]]
    assert set(parity["section"].astype(str)) == {"8.1", "8.2", "8.3", "8.5", "8.6"}


def test_the_committed_measures_have_every_model_finite() -> None:
    measures = json.loads((ROOT / "reports/evaluate/metrics.json").read_text())
    runs = set(YAML(typ="safe").load(ROOT / "params.yaml")["runs"])
    assert runs <= set(measures)
    for splits in measures.values():
        assert all(measured["perplexity"] > 1 for measured in splits.values())


def test_no_machine_path_is_committed() -> None:
    for path in (ROOT / "reports").rglob("*"):
        if path.is_file():
            assert b"/home/" not in path.read_bytes(), path
            assert str(Path.home()).encode() + b"/" not in path.read_bytes(), path
