"""The notebook runs on a finished run; ``pytest --nbmake --overwrite docs/notebook.ipynb`` stores its output."""

import contextlib
import json
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from smoke import ROOT
from workspace import Workspace


@pytest.mark.slow
def test_the_code_of_every_cell_runs_on_a_finished_run(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {}
    with contextlib.chdir(workspace.folder), mpl.rc_context({"backend": "agg"}):
        for cell in json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    printed, errors = capsys.readouterr()
    assert re.findall(r"^(\S+): time traveller", printed, re.M) == ["0", "0.5", "1"]
    assert errors == ""
    assert plt.get_fignums() != []
    plt.close("all")
