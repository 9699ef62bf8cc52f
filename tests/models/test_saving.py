"""Folders of saved models: the models elsewhere, without the pipeline and with few packages."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import seqlm
from full_disks import as_owner
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.models.info import Metadata, ModelFile, mixture_info
from small_runs import write_models, write_run
from smoke import ROOT
from stages_by_hand import prepare, refused, run_python, succeeded

TEXT = "the sea came in"
MIXTURE, DYNAMIC = "small+char-kneser-ney-3", "ngrams/char/char-kneser-ney-3+dynamic"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    lines = "the sea came in\nand time travellers went out\n"
    layout = write_models(prepare(tmp_path_factory.mktemp("run")), lines * 20)
    write_run(layout, "attentive", model="transformer", embedding="learned")
    (layout.ngrams("char") / ".keys_1.npy.0.part").touch()  # a killed process left it
    # A mixture and a dynamic model, as the stages describe them.
    static = seqlm.open(layout.root)
    infos = [static["small"].info, static["char-kneser-ney-3"].info]
    mixture, weights = mixture_info(infos), {infos[0].name: 0.4, infos[1].name: 0.6}
    for path, info, metadata in (
        (layout.mixtures / f"{mixture.name}.json", mixture, Metadata(weights=weights)),
        (layout.scores / DYNAMIC / "score.json", infos[1].as_dynamic(), Metadata()),
    ):
        ModelFile(model=info, metadata=metadata).write(path)
    return layout


def test_a_run_that_nobody_may_read_is_not_left_out(run: Layout, tmp_path: Path) -> None:
    command = [*as_owner(), sys.executable, "-m", "seqlm", "export", str(tmp_path / "out"), "--root", str(run.root)]
    run.run("small").chmod(0)
    try:
        refused(subprocess.run(command, capture_output=True, text=True), 5, "runs/small: cannot be read: Permission")
    finally:
        run.run("small").chmod(0o755)


@pytest.mark.slow
def test_the_command_saves_all_models(run: Layout, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seqlm", "export", "out", "--root", str(run.root)]
    version = subprocess.run([*command[:3], "--version"], capture_output=True, text=True)
    assert succeeded(version) == f"seqlm {seqlm.__version__}\n"
    unknown = subprocess.run([*command, "--model", "x"], cwd=tmp_path, capture_output=True, text=True)
    refused(unknown, 2, "there is no model 'x'")
    assert not (tmp_path / "out").exists()
    printed = succeeded(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True))
    assert printed.endswith("seqlm.open('out') reads them\n")
    here, there = seqlm.open(tmp_path / "out"), seqlm.open(run.root)
    assert list(here) == list(there)
    for name in ("small", "subword-kneser-ney-3", "char-by-word-kneser-ney-3", "char-kneser-ney-3+dynamic", MIXTURE):
        assert here[name].score(TEXT) == there[name].score(TEXT)
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    refused(again, 2, "error: out: exists: name a new folder\n")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("small", ["corpus/char", "models/runs/small"]),
        (MIXTURE, ["corpus/char", "models/mixtures", "models/ngrams/char", "models/runs/small"]),
        ("char-by-word-kneser-ney-3", ["corpus/char", "corpus/word", "models/ngrams/word"]),
        ("char-kneser-ney-3+dynamic", ["corpus/char", "models/ngrams/char", f"scores/{DYNAMIC}"]),
    ],
)
def test_a_model_is_saved_with_what_it_needs(
    name: str, parts: list[str], run: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The folder is found again wherever the program works when it opens the model.
    monkeypatch.chdir(run.root.parent)
    models = seqlm.open(run.root.name)
    monkeypatch.chdir(tmp_path)
    there = models[name]
    there.save("saved")
    files = [path.relative_to(tmp_path / "saved") for path in (tmp_path / "saved" / "data").rglob("*.*")]
    assert sorted({path.parent.as_posix().removeprefix("data/") for path in files}) == parts
    # The training text goes along only with a model that counts it again.
    assert [path.name for path in files if path.suffix == ".npy" and "corpus" in path.parts] == [
        "train.npy"
    ] * there.info.dynamic
    here = seqlm.open(tmp_path / "saved")
    assert here[name].score(TEXT) == there.score(TEXT)
    with pytest.raises(KeyError, match=f"choose from .*{re.escape(name)}"):
        here["attentive"]
    with pytest.raises(DataError, match="saved models have no table: open their run"):
        _ = here.table
    # What was saved can be saved again.
    here[name].save(tmp_path / "again")
    assert seqlm.open(tmp_path / "again")[name].score(TEXT) == there.score(TEXT)


@pytest.mark.parametrize(("by", "smoothing"), [("word", "kneser_ney"), ("char", "laplace")])
def test_a_fitted_model_is_saved_too(by: str, smoothing: str, tmp_path: Path) -> None:
    model = seqlm.fit_ngram(TEXT * 3, 2, by, smoothing)  # type: ignore[arg-type]
    model.save(tmp_path / "saved")
    models = seqlm.open(tmp_path / "saved")
    assert models[model.name].score(TEXT) == model.score(TEXT)
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.name.startswith("train")]
    with pytest.raises(ParamsError, match="exists"):
        model.save(tmp_path / "saved")
    arpa = seqlm.open_arpa(ROOT / "tests" / "ngrams" / "lmplz.arpa")
    with pytest.raises(ParamsError, match=r"lmplz\.arpa: holds nothing to save"):
        arpa.save(tmp_path / "arpa")
    assert not list((tmp_path / "arpa").glob("*"))


def test_a_changed_or_missing_file_is_refused(run: Layout, tmp_path: Path) -> None:
    seqlm.open(run.root)["small"].save(tmp_path / "whole")
    changes = {"data/models/runs/small/model.json": b"{}", "data/models/runs/small/weights.safetensors": None}
    for name, content in changes.items():
        copy = tmp_path / Path(name).stem
        shutil.copytree(tmp_path / "whole", copy)
        (copy / name).unlink() if content is None else (copy / name).write_bytes(content)
        with pytest.raises(DataError, match=name):
            seqlm.open(copy)


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
        "assert not {'numpy', 'pandas', 'numba', 'torch'} & set(sys.modules)\n"
        f"models = seqlm.open({str(run.root)!r})\n"
        "names = ['char-kneser-ney-3', 'char-by-word-kneser-ney-3', 'small', 'char-kneser-ney-3+dynamic']\n"
        f"for name in [*names, {MIXTURE!r}]:\n"
        f"    model = models[name]\n"
        f"    assert model.score({TEXT!r}).tokens == len(model.surprisals({TEXT!r})) == 15\n"
        "    assert len(model.generate('the', 5)) >= 5\n"
        "for name in ('attentive', 'subword-kneser-ney-3'):\n"
        "    try:\n"
        f"        models[name].score({TEXT!r})\n"
        "    except seqlm.SeqlmError as error:\n"
        "        print(error)\n"
    )
    assert succeeded(run_python(code, base)).splitlines() == [
        "a network (transformer, device 'cpu') needs the package torch: pip install 'seqlm[torch]'",
        "a model over subwords needs the package tokenizers: pip install 'seqlm[subwords]'",
    ]
