"""The notebook runs on a finished run, and is stored with its output."""

import contextlib
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from workspace import Workspace

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from execute_notebook import NOTEBOOK, executed, without_what_varies  # noqa: E402 (needs what was just looked for)


def test_the_code_of_every_cell_runs_on_a_finished_run(workspace: Workspace, capsys: pytest.CaptureFixture) -> None:
    names: dict[str, object] = {}
    with contextlib.chdir(workspace.folder), mpl.rc_context({"backend": "agg"}):
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            if cell.cell_type == "code":
                exec(cell.source, names)
    printed, errors = capsys.readouterr()
    assert re.findall(r"^(\S+): time traveller", printed, re.M) == ["0", "0.5", "1"]
    assert errors == ""
    assert plt.get_fignums() != []
    plt.close("all")


@pytest.mark.slow
def test_every_cell_runs_in_a_kernel(workspace: Workspace) -> None:
    notebook = executed(workspace.folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_the_notebook_is_stored_with_its_output_and_without_times() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells[2:])
    assert nbformat.writes(without_what_varies(nbformat.from_dict(notebook)), indent=1) + "\n" == text
