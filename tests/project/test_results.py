"""The committed results are those of the committed lock file, and true to the book."""

import hashlib
import json
from pathlib import Path

import pandas as pd
from ruamel.yaml import YAML

from workspace import ROOT


def locked_outs() -> dict[str, str]:
    lock = YAML(typ="safe").load(ROOT / "dvc.lock")
    return {out["path"]: out["md5"] for stage in lock["stages"].values() for out in stage.get("outs", [])}


def test_every_committed_report_is_the_one_in_the_lock_file() -> None:
    outs = locked_outs()
    reports = {path: md5 for path, md5 in outs.items() if path.startswith("reports/")}
    assert {"reports/evaluate/metrics.json", "reports/book/parity.csv", "reports/index.html"} <= set(reports)
    for path, md5 in reports.items():
        assert hashlib.md5((ROOT / path).read_bytes(), usedforsecurity=False).hexdigest() == md5, path


def test_no_report_is_left_from_another_run() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "reports").rglob("*") if path.is_file()}
    assert {path for path in found if not path.endswith(".gitignore")} == {
        path for path in locked_outs() if path.startswith("reports/")
    }


def test_every_value_of_the_book_is_met() -> None:
    parity = pd.read_csv(ROOT / "reports/book/parity.csv")
    assert len(parity) >= 19
    assert parity["ok"].all(), parity[~parity["ok"]]
    assert set(parity["section"].astype(str)) == {"8.1", "8.2", "8.3", "8.5", "8.6"}


def test_the_committed_metrics_have_every_model_finite() -> None:
    metrics = json.loads((ROOT / "reports/evaluate/metrics.json").read_text())
    runs = set(YAML(typ="safe").load(ROOT / "params.yaml")["runs"])
    assert runs <= set(metrics)
    for splits in metrics.values():
        assert all(measures["perplexity"] > 1 for measures in splits.values())


def test_no_machine_path_is_committed() -> None:
    for path in (ROOT / "reports").rglob("*"):
        if path.is_file():
            assert b"/home/" not in path.read_bytes(), path
            assert str(Path.home()).encode() + b"/" not in path.read_bytes(), path
