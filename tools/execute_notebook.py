"""Execute docs/notebook.ipynb on the finished run of this folder and store its output, without times or versions.

    python tools/execute_notebook.py

Needs nbclient, nbformat and ipykernel, which the tests install.
"""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from smoke import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def executed(folder: Path) -> nbformat.NotebookNode:
    """Return the notebook after all its cells ran in the folder of a finished run.

    Raises CellExecutionError if a cell fails.
    """
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # An empty entry would be the working directory, so none may remain.
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}, record_timing=False)
    client.coalesce_streams = True  # how a cell's output was cut does not matter
    client.execute(env=os.environ | {"PYTHONPATH": paths})
    return without_what_varies(notebook)


def without_what_varies(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove what differs between two executions: the names of cells, and the machine's version of Python."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for place, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{place}", {}
    return notebook


if __name__ == "__main__":
    NOTEBOOK.write_text(nbformat.writes(executed(ROOT), indent=1) + "\n", encoding="utf-8", newline="\n")
