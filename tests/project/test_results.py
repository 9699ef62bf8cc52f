"""The committed results: free of machine paths, and drawn by ``dvc plots show``."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from smoke import ROOT, environment_of_python


def test_no_machine_path_is_committed() -> None:
    paths = (b"/home/", f"{Path.home()}/".encode())
    reports = [path for path in (ROOT / "reports").rglob("*") if path.is_file()]
    assert [path for path in reports if any(word in path.read_bytes() for word in paths)] == []


@pytest.mark.slow
def test_dvc_draws_the_tables_with_titles_on_their_axes(tmp_path: Path) -> None:
    command = ["dvc", "plots", "show", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment_of_python(), capture_output=True, check=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    drawn = [json.loads(found) for found in re.findall(r"var spec = (\{.+\});$", page, re.MULTILINE)]
    assert len(drawn) > 20
    for chart in drawn:
        assert "/" not in chart["title"]
        # The axes of a layered chart are those of its layers, too.
        encoding = chart["encoding"] | (chart["layer"][0]["encoding"] if "layer" in chart else {})
        assert encoding["x"]["title"] not in ("", "x", "step"), chart["title"]
