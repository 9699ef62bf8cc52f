"""The list "Add a smoothing method" of CONTRIBUTING.md, followed in a copy of the project: what it adds works."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from declared_deps import require_declared_files, require_declared_settings
from smoke import ROOT, SMALL
from workspace import Workspace

TEMPLATE = ROOT / "docs" / "templates" / "absolute.py"
MODULE, REGISTRY = "src/seqlm/ngrams/models/absolute.py", "src/seqlm/ngrams/models/registry.py"
SETTINGS, CHOICES = "src/seqlm/pipeline/ngrams/settings.py", "src/seqlm/pipeline/ngrams/smoothing.py"


def edit(path: Path, before: str, added: str) -> None:
    """Add text to a file, after the only place that matches a pattern."""
    text, found = re.subn(before, lambda match: match[0] + added, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert found == 1, (path, before)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def extended(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    shutil.copyfile(TEMPLATE, workspace.folder / MODULE)
    edit(workspace.folder / REGISTRY, r"\A\"{3}(?:.|\n)*?\"{3}\n\n",
         "from seqlm.ngrams.models.absolute import AbsoluteDiscounting\n")  # fmt: skip
    edit(workspace.folder / REGISTRY, r"^SMOOTHINGS: .*KneserNey(?=\))", ", AbsoluteDiscounting")
    field = "    absolute_discount: Annotated[float, Field(gt=0, lt=1)]\n"
    edit(workspace.folder / SETTINGS, r"^class NgramsParams.*\n    \".*\n\n", field)
    edit(workspace.folder / CHOICES, r"^        Uniform.smoothing: .*\n",
         '        "absolute": {"discount": params.absolute_discount},\n')  # fmt: skip
    edit(workspace.folder / "params.yaml", r"^ngrams:.*\n", "  absolute_discount: 0.75\n")
    return workspace


@pytest.mark.slow
def test_the_method_is_counted_scored_ranked_and_drawn(extended: Workspace) -> None:
    extended.begin(SMALL)
    extended.run("dvc", "repro")
    extended.keep_traces()
    table = pd.read_csv(extended.folder / "reports/evaluate/table.csv")
    assert {"char-absolute-3", "word-absolute-2"} <= set(table["model"])
    assert set(table.loc[table["model"] == "char-absolute-3", "smoothing"]) == {"absolute"}
    assert "char-absolute-3" in extended.metrics()
    require_declared_files(extended)
    require_declared_settings(extended)
