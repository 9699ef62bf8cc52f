"""The charts of `dvc plots show`: every table has a title and named axes and is drawn on our own page."""

import csv
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from smoke import ROOT, environment_of_python

PIPELINE: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "dvc.yaml")
NO_NAME = ("", "x", "y", "step", "dvc_inferred_y_value")


def declared() -> dict[str, dict[str, Any]]:
    """Return how each table is drawn, by its path."""
    stages = (stage.get("do", stage) for stage in PIPELINE["stages"].values())
    entries = [entry for stage in stages for entry in stage.get("plots", [])]
    return {path: how for entry in entries for path, how in entry.items() if path.endswith(".csv")}


def test_every_table_has_a_template_a_title_and_named_axes() -> None:
    wanted = {"template", "x", "y", "x_label", "y_label", "title"}
    assert {path: wanted - how.keys() for path, how in declared().items() if not wanted <= how.keys()} == {}
    for chart in PIPELINE["plots"]:
        ((title, how),) = chart.items()
        assert wanted - {"title"} <= how.keys(), title
    templates = {how["template"] for how in declared().values()}
    assert templates == {path.stem for path in (ROOT / ".dvc" / "plots").glob("*.json")}


def test_every_axis_is_a_column_of_its_table() -> None:
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
    for chart in drawn:
        # The axes of a layered chart are those of its layers, too.
        encoding = chart["encoding"] | (chart["layer"][0]["encoding"] if "layer" in chart else {})
        assert "/" not in chart["title"]
        assert encoding["x"]["title"] not in NO_NAME, chart["title"]
        # Bars are labelled one by one.
        assert encoding["y"]["title"] not in NO_NAME or "yOffset" in encoding, chart["title"]
