"""Exported folders: the models elsewhere, without the pipeline."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest
from seqlm.models.exporting import export_models

import seqlm
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import write_checksummed
from seqlm.core.layout import Layout
from seqlm.evaluate.mixtures import describe_mixture
from seqlm.models.language_model import LanguageModel
from seqlm.score.folds import Folds
from seqlm.score.scores import FORMAT
from small_runs import write_models, write_run
from smoke import ROOT
from stages_by_hand import prepare, refused, run_python, succeeded

TEXT = "the sea came in"
MIXTURE, DYNAMIC = "small+char-kneser-ney-3", "ngrams/char/char-kneser-ney-3+dynamic"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = write_models(
        prepare(tmp_path_factory.mktemp("run")), "the sea came in\nand time travellers went out\n" * 20
    )
    write_run(layout, "attentive", model="transformer", embedding="learned")
    # A mixture and a dynamic model, as the stages describe them.
    static = seqlm.open(layout.root)
    of_small, of_counts = static["small"].info, static["char-kneser-ney-3"].info
    mixture = describe_mixture([of_small, of_counts])
    value = {"format": 1, "model": asdict(mixture), "weights": {of_small.name: 0.4, of_counts.name: 0.6}}
    write_checksummed(layout.mixtures / f"{mixture.name}.json", value)
    dynamic = {"model": asdict(of_counts.as_dynamic()), "metadata": {"num_updates": 2}}
    write_checksummed(layout.scores / DYNAMIC / "score.json", {"format": FORMAT} | dynamic)
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
    pd.testing.assert_frame_equal(here.table, there.table, check_dtype=False)
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "| small | 4.000 | 16.00 |" in readme
    assert 'models["small"]' in readme
    # No text but that of train.
    assert not list((tmp_path / "out").rglob("test*"))
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    refused(again, 2, "error: out: exists: name a new folder\n")


def test_one_model_is_exported_with_what_it_needs(run: Layout, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seqlm", "export", "--root", str(run.root)]
    refused(subprocess.run([*command, "out", "--model", "x"], cwd=tmp_path, capture_output=True, text=True), 2, "'x'")
    assert not (tmp_path / "out").exists()
    there = seqlm.open(run.root)
    for name, parts, has_text in (
        ("small", ["configs", "corpus/char", "models/runs/small"], False),
        (MIXTURE, ["configs", "corpus/char", "models/mixtures", "models/ngrams/char", "models/runs/small"], False),
        ("char-by-word-kneser-ney-3", ["corpus/char", "corpus/word", "models/ngrams/word"], False),
        ("char-kneser-ney-3+dynamic", ["corpus/char", "models/ngrams/char", f"scores/{DYNAMIC}"], True),
    ):
        export_models(run, tmp_path / name, [name])
        folder = tmp_path / name
        files = {path.relative_to(folder / "data") for path in (folder / "data").rglob("*") if path.is_file()}
        assert sorted({path.parent.as_posix() for path in files} - {"heldout/char"}) == parts
        assert [path.name for path in files if path.parts[0] == "corpus" and path.suffix == ".npy"] == [
            "train.npy"
        ] * has_text
        assert ("training text is not" in (folder / "README.md").read_text()) == (not has_text)
        here = seqlm.open(folder)
        assert list(here) == [name, "small", "char-kneser-ney-3"][: 3 if name == MIXTURE else 1]
        assert here[name].score(TEXT) == there[name].score(TEXT)
        with pytest.raises(KeyError, match=f"choose from {re.escape(name)}"):
            here["word-kneser-ney-2"]


# Takes away every package that `pip install seqlm` does not bring.
LIGHT = """
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import distribution, packages_distributions
from packaging.requirements import Requirement

def closure(name):
    if name not in found:
        found.add(name)
        for requirement in map(Requirement, distribution(name).requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                closure(requirement.name.lower().replace("_", "-"))

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        own = {each.lower().replace("_", "-") for each in owners.get(name, ())}
        if own and not own & found:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

found, owners = {"seqlm"}, packages_distributions()
for name in sys.argv[1].split():
    closure(name)
assert 8 < len(found) < 25, found
for module in [module for module in sys.modules if module.partition(".")[0] == "packaging"]:
    del sys.modules[module]
sys.meta_path.insert(0, Missing())
"""


def test_the_light_installation_scores_all_that_needs_no_extra(run: Layout) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = " ".join(re.split(r"[^\w.-]", line)[0] for line in project["dependencies"])
    code = LIGHT + (
        "import seqlm\n"
        f"models = seqlm.open({str(run.root)!r})\n"
        "names = ['char-kneser-ney-3', 'char-by-word-kneser-ney-3', 'small', 'char-kneser-ney-3+dynamic']\n"
        f"for name in [*names, {MIXTURE!r}]:\n"
        f"    model = models[name]\n"
        f"    assert model.score({TEXT!r}).tokens == len(model.surprisals({TEXT!r})) - 1\n"
        "    assert len(model.generate('the', 5)) >= 5\n"
        "for name in ('attentive', 'subword-kneser-ney-3'):\n"
        "    try:\n"
        f"        models[name].score({TEXT!r})\n"
        "    except seqlm.core.errors.SeqlmError as error:\n"
        "        print(error)\n"
    )
    assert succeeded(run_python(code, base)).splitlines() == [
        "the network 'attentive' (transformer, device 'cpu') needs the package torch: pip install 'seqlm[torch]'",
        "a model over subwords needs the package tokenizers: pip install 'seqlm[subwords]'",
    ]


@pytest.mark.slow
def test_the_wheel_scores_exported_models_in_an_environment_of_its_own(run: Layout, tmp_path: Path) -> None:
    # A copy, because building leaves files beside the sources.
    shutil.copytree(
        ROOT / "src", tmp_path / "project" / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / "project")
    shutil.copytree(run.root, tmp_path / "run")
    write_run(Layout(tmp_path / "run"), "long", model="lstm")
    names = ["char-kneser-ney-3", "word-kneser-ney-3", "long", MIXTURE]
    export_models(Layout(tmp_path / "run"), tmp_path / "elsewhere" / "models", names)
    python, outside = tmp_path / "light" / "bin" / "python", {**os.environ, "PYTHONPATH": ""}

    def done(*command: object) -> str:
        found = subprocess.run(
            list(map(str, command)), cwd=tmp_path / "elsewhere", env=outside, capture_output=True, text=True
        )
        return succeeded(found)

    done(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, tmp_path / "project")
    done(sys.executable, "-m", "venv", tmp_path / "light")
    (wheel,) = tmp_path.glob("seqlm-*.whl")
    done(python, "-m", "pip", "install", "--quiet", wheel)
    installed = {each["name"].lower() for each in json.loads(done(python, "-m", "pip", "list", "--format", "json"))}
    assert not installed & {"click", "dask", "dvc", "matplotlib", "tokenizers", "torch"}
    code = f"import seqlm, sys; models = seqlm.open('models')\nfor name in {names}: print(models[name].score({TEXT!r}))"
    there = seqlm.open(tmp_path / "run")
    assert done(python, "-c", code).splitlines() == [str(there[name].score(TEXT)) for name in names]


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
    assert table["label"].is_unique
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
    assert len(blocks) == 8
    named = set(re.findall(r"`(\w+)\(\w*\)`", page))
    assert named >= {"surprisals", "token_nll", "reader"}
    assert all(hasattr(LanguageModel, name) for name in named), named
    shutil.copytree(run.root, tmp_path / "run")
    export_models(run, tmp_path / "run" / "exported")
    code = "\n".join(blocks).replace('"lstm"', '"small"')
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "run", check=True, capture_output=True)
