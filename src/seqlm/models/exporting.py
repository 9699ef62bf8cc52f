"""Folders with the models of a finished run and the files that these need, but without DVC and the scripts."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from seqlm.core.errors import DataError
from seqlm.core.files import read_csv, write_csv, write_errors, write_text
from seqlm.core.layout import Layout
from seqlm.models.loading import Models
from seqlm.models.manifest import new_folder, seal

_README = Path(__file__).with_name("exported.md")
"""The README of an exported folder, with places for its name, a model, a note on the training text, and a table."""
_WITH_TEXT = """\
Some of these models need the training text. It is in `data/corpus/`: share this folder only if you may share that text.
"""
_WITHOUT_TEXT = """\
The training text is not in this folder, but vocabularies have its words or characters, and counts its n-grams.
"""


def export_models(layout: Layout, folder: Path, names: Sequence[str] = ()) -> int:
    """Write models of a finished run, and the members of mixtures, to a new folder; return the number of files.

    Without names all are written. The training text goes along only if one of the models needs it. Raises ParamsError
    if the folder exists and is not empty, or if there is no such model, and DataError if the run has not finished.
    """
    table = read_csv(layout.reports("evaluate", "table.csv"))
    if not layout.mixtures.is_dir():
        raise DataError(f"{layout.mixtures}: no such folder: run the pipeline first")
    sources = Models(layout).sources(names)
    table = table[table["model"].isin(list(sources))] if names else table
    folds = layout.heldout("char") / "folds.json"
    parts = {
        layout.params,
        *([folds] if folds.is_file() else ()),
        *(part for each in sources.values() for part in each.parts),
    }
    rows = [f"| {row.model} | {row.test_bits:.3f} | {row.test_perplexity:.2f} |" for row in table.itertuples()]
    example = [*names, *table["model"]][0]
    has_text = any(part.name == "train.npy" for part in parts)
    readme = _README.read_text(encoding="utf-8").format(
        name=folder.resolve().name, model=example, text=_WITH_TEXT if has_text else _WITHOUT_TEXT, rows="\n".join(rows)
    )
    with new_folder(folder) as work:
        for part in sorted(parts):
            _copy(part, work / part.relative_to(layout.root))
        write_csv(Layout(work).reports("evaluate", "table.csv"), table)
        num_files = seal(work, list(sources)) + 1
        write_text(work / "README.md", readme)
    return num_files


def _copy(part: Path, target: Path) -> None:
    """Copy a file, or the files of a folder."""
    with write_errors(target):
        for path in [part] if part.is_file() else sorted(part.iterdir()):
            copy = target if part.is_file() else target / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
