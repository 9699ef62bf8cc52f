"""The notebook runs on a finished run, and is stored with its output."""

import re

import pytest

from workspace import Workspace

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from execute_notebook import NOTEBOOK, executed, without_what_varies  # noqa: E402 (needs what was just looked for)


def test_every_cell_runs_on_a_finished_run(workspace: Workspace) -> None:
    notebook = executed(workspace.folder)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert re.findall(r"^(\S+): time traveller", "".join(output.get("text", "") for output in outputs), re.M) == [
        "0", "0.5", "1",
    ]  # fmt: skip


def test_the_notebook_is_stored_with_its_output_and_without_times() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells[2:])
    assert nbformat.writes(without_what_varies(nbformat.from_dict(notebook)), indent=1) + "\n" == text
