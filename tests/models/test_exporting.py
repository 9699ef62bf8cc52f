"""Exported folders: the models elsewhere, without the pipeline."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import seqlm
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.heldout.folds import Folds
from seqlm.models.exporting import export_models
from seqlm.models.language_model import LanguageModel
from small_runs import write_models
from smoke import ROOT
from stages_by_hand import prepare, refused, run_python, succeeded

TEXT = "the sea came in"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = write_models(
        prepare(tmp_path_factory.mktemp("run")), "the sea came in\nand time travellers went out\n" * 20
    )
    layout.mixtures.mkdir()
    layout.reports("evaluate").mkdir(parents=True)
    table = pd.DataFrame({"model": ["small", "words"], "test_bits": [4.0, 3.0], "test_perplexity": [16.0, 9.0]})
    table.to_csv(layout.reports("evaluate", "table.csv"), index=False)
    Folds([], []).save(layout.heldout("char"))
    return layout


def test_an_exported_folder_gives_the_same_models(run: Layout, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seqlm", "export", "out", "--root", str(run.root)]
    printed = succeeded(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True))
    assert printed.endswith("seqlm.open('out') reads them\n")
    here, there = seqlm.open(tmp_path / "out"), seqlm.open(run.root)
    assert list(here) == list(there)
    for name in ("small", "subword-kneser-ney-3", "char-by-word-kneser-ney-3"):
        assert here[name].score(TEXT) == there[name].score(TEXT)
    assert here.table.equals(there.table)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "| small | 4.000 | 16.00 |" in readme
    assert 'models["small"]' in readme
    # No text but that of train.
    assert not list((tmp_path / "out").rglob("test*"))
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    refused(again, 2, "error: out: exists: name a new folder\n")


def test_a_changed_or_missing_file_is_refused(run: Layout, tmp_path: Path) -> None:
    export_models(run, tmp_path / "whole")
    for name, content in (("params.yaml", b"seed: 1\n"), ("data/models/runs/small/weights.safetensors", None)):
        copy = tmp_path / Path(name).stem
        shutil.copytree(tmp_path / "whole", copy)
        (copy / name).unlink() if content is None else (copy / name).write_bytes(content)
        with pytest.raises(DataError, match=name):
            seqlm.open(copy)


def test_a_run_that_has_not_finished_is_not_exported(run: Layout, tmp_path: Path) -> None:
    shutil.copytree(run.root, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "data" / "models" / "mixtures")
    with pytest.raises(DataError, match="data/models/mixtures: no such folder: run the pipeline first"):
        export_models(Layout(tmp_path / "run"), tmp_path / "out")
    with pytest.raises(ParamsError, match="exists"):
        export_models(run, tmp_path)


def test_importing_and_opening_imports_no_framework(run: Layout) -> None:
    code = (
        "import sys, seqlm\n"
        "assert not {'numpy', 'pandas', 'numba', 'torch'} & set(sys.modules)\n"
        f"models = seqlm.open({str(run.root)!r})\n"
        f"assert len(models) > 20 and models['char-kneser-ney-3'].score({TEXT!r}).tokens == 14\n"
        f"assert models['small'].score({TEXT!r}).tokens == 14\n"
        "assert 'torch' not in sys.modules\n"
    )
    succeeded(run_python(code))


def test_texts_are_compared_with_intervals(run: Layout) -> None:
    chosen = ["small", "char-kneser-ney-3", "word-kneser-ney-3"]
    long = " ".join([TEXT, "and the sea went out"] * 60)
    table = seqlm.open(run.root).compare(long, chosen).set_index("model")
    assert set(table.index) == set(chosen)
    # A model over words need not predict spaces, so it comes last and is not compared.
    assert table["only_words"].tolist() == [False, False, True]
    assert table["bits_per_character"][:2].is_monotonic_increasing
    assert ((table["ci_low"] < table["bits_per_character"]) & (table["bits_per_character"] < table["ci_high"])).all()
    assert table.loc["small", "verdict"] == "worse"
    assert table["difference"].isna().tolist() == [name != "small" for name in table.index]
    short = seqlm.open(run.root).compare(TEXT, chosen[:2])
    assert short["ci_low"].isna().all()
    # As in the main table, parts of train say how far test may be from other texts.
    Folds([[1.0, 1.2, 1.4], [1.0, 1.1, 1.2]], [[0.0, 1.0], [1.0, 1.5]]).save(run.heldout("char"))
    wide = seqlm.open(run.root).compare(long, chosen).set_index("model")
    assert (wide["ci_high"] - wide["ci_low"] > 3 * (table["ci_high"] - table["ci_low"])).all()


def test_the_code_of_the_docs_runs(run: Layout, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "use-from-python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    named = set(re.findall(r"`(\w+)\(\w*\)`", page))
    assert named >= {"surprisals", "token_nll", "reader"}
    assert all(hasattr(LanguageModel, name) for name in named), named
    shutil.copytree(run.root, tmp_path / "run")
    export_models(run, tmp_path / "run" / "exported")
    code = "\n".join(blocks).replace('"lstm"', '"small"')
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "run", check=True, capture_output=True)
