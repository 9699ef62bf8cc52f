"""The committed results: those of the lock file, in agreement with the book, and drawn by ``dvc plots show``."""

import csv
import hashlib
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from ruamel.yaml import YAML

from default_params import skip_if_experiment_is_applied
from smoke import ROOT, environment_of_python

PIPELINE: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "dvc.yaml")
PLAYGROUND = "reports/playground.html"
"""Written with the reports, but kept in DVC's cache."""


def md5_of_file(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def md5_of_folder(folder: Path) -> str:
    """Return the hash that DVC gives to a folder: that of the list of its files and their hashes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    entries = [{"md5": md5_of_file(path), "relpath": path.relative_to(folder).as_posix()} for path in files]
    return hashlib.md5(json.dumps(entries).encode(), usedforsecurity=False).hexdigest() + ".dir"


@cache
def locked_reports() -> dict[str, str]:
    lock = YAML(typ="safe").load(ROOT / "dvc.lock")
    outs = {out["path"]: out["md5"] for stage in lock["stages"].values() for out in stage.get("outs", [])}
    return {path: digest for path, digest in outs.items() if path.startswith("reports/") and path != PLAYGROUND}


def test_every_committed_report_is_the_one_in_the_lock_file() -> None:
    reports = locked_reports()
    assert {"reports/evaluate/metrics.json", "reports/book/printed.csv", "reports/index.html"} <= set(reports)
    found = {
        path: (md5_of_folder if md5.endswith(".dir") else md5_of_file)(ROOT / path) for path, md5 in reports.items()
    }
    assert found == reports


def test_no_report_of_another_run_is_left() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "reports").rglob("*") if path.is_file()}
    folders = {path for path, md5 in locked_reports().items() if md5.endswith(".dir")}
    outside = {path for path in found if not path.endswith(".gitignore") and not path.startswith(tuple(folders))}
    assert outside - {PLAYGROUND} == set(locked_reports()) - folders


def test_every_value_of_the_book_is_met() -> None:
    skip_if_experiment_is_applied()
    for table, least in (("printed", 23), ("derived", 14)):
        rows = pd.read_csv(ROOT / f"reports/book/{table}.csv")
        compared = rows[rows["met"].notna()]
        assert len(compared) >= least
        assert compared["met"].all(), compared[~compared["met"].astype(bool)]


def test_every_model_has_finite_committed_metrics() -> None:
    skip_if_experiment_is_applied()
    metrics = json.loads((ROOT / "reports/evaluate/metrics.json").read_text())
    assert set(YAML(typ="safe").load(ROOT / "params.yaml")["runs"]) <= set(metrics)
    for splits in metrics.values():
        assert all(1 < metric["perplexity"] < float("inf") for metric in splits.values())


def test_no_machine_path_is_committed() -> None:
    paths = (b"/home/", f"{Path.home()}/".encode())
    reports = [path for path in (ROOT / "reports").rglob("*") if path.is_file()]
    assert [path for path in reports if any(word in path.read_bytes() for word in paths)] == []


def declared() -> dict[str, dict[str, Any]]:
    """Return how each table is drawn, by its path."""
    stages = (stage.get("do", stage) for stage in PIPELINE["stages"].values())
    entries = [entry for stage in stages for entry in stage.get("plots", [])]
    return {path: how for entry in entries for path, how in entry.items() if path.endswith(".csv")}


def test_every_template_is_used_and_every_axis_is_a_column_of_its_table() -> None:
    templates = {how["template"] for how in declared().values()}
    assert templates == {path.stem for path in (ROOT / ".dvc" / "plots").glob("*.json")}
    wrong = []
    for path, how in declared().items():
        for example in sorted(ROOT.glob(re.sub(r"\$\{\w+\}", "*", path))):
            with example.open(encoding="utf-8", newline="") as file:
                columns = next(csv.reader(file))
            wrong += [(example, how[axis]) for axis in "xy" if how[axis] not in columns]
    assert wrong == []


def test_dvc_draws_the_charts_on_our_page(tmp_path: Path) -> None:
    command = ["dvc", "plots", "show", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment_of_python(), capture_output=True, check=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Charts of the tables" in page
    charts = [json.loads(found) for found in re.findall(r"var spec = (\{.*\});$", page, re.MULTILINE)]
    drawn = [chart for chart in charts if chart]
    assert len(drawn) > 40
    no_name = ("", "x", "y", "step", "dvc_inferred_y_value")
    for chart in drawn:
        # The axes of a layered chart are those of its layers, too.
        encoding = chart["encoding"] | (chart["layer"][0]["encoding"] if "layer" in chart else {})
        assert "/" not in chart["title"]
        assert encoding["x"]["title"] not in no_name, chart["title"]
        # Bars are labelled one by one.
        assert encoding["y"]["title"] not in no_name or "yOffset" in encoding, chart["title"]
