"""Folders of models: what they say of a model whatever happens to the settings, and models saved for use elsewhere."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest import mock

import pytest

import seqlm
from full_disks import as_owner
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.layout import Layout
from seqlm.core.stored import read_array
from seqlm.models.index import Models
from seqlm.models.info import Metadata, ModelFile, mixture_info
from seqlm.pipeline.score.scores import load_scores
from seqlm.vocab.vocabulary import Vocab
from small_runs import change_stored, write_models, write_run
from smoke import ROOT, change_params
from stages_by_hand import in_this_process, prepare, refused, run_python, succeeded

TEXT = "the sea came in"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = write_models(prepare(tmp_path))
    write_run(layout, "other", model="gru", max_tokens=20)
    return layout


@pytest.fixture
def copied(models: Models, tmp_path: Path) -> Layout:
    """A copy of the run whose models were scored."""
    shutil.copytree(models.layout.root, tmp_path / "run")
    return Layout(tmp_path / "run")


def lengthen_train(layout: Layout) -> None:
    """Let the vocabulary say that its text was ten times as long."""
    change_stored(layout.vocab("char"), lambda value: value["splits"]["train"].update(num_chars=10**5))


def test_changed_settings_change_no_description(layout: Layout) -> None:
    def described() -> list[tuple[object, object]]:
        models = seqlm.open(layout.root)
        return [(models[run].info, models[run].score(TEXT)) for run in ("small", "other")]

    before, config = described(), layout.config("small")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model": "gru", "max_tokens": 10}))
    assert described() == before
    # The settings of two runs are exchanged.
    content = config.read_text()
    config.write_text(layout.config("other").read_text())
    layout.config("other").write_text(content)
    refused(in_this_process(layout.root)("train", "--model", "small"), 3, "describes another run, 'other'")
    assert described() == before
    change_params(layout.params, {"runs": {"small": {"token": "word", "model": "lstm", "max_tokens": 30}}})
    succeeded(in_this_process(layout.root)("configure"))
    assert described() == before
    layout.params.unlink()
    shutil.rmtree(layout.configs)
    assert described() == before


def test_a_text_that_was_counted_by_nobody_changes_no_description(layout: Layout) -> None:
    before = {name: model.info for name, model in seqlm.open(layout.root).items()}
    key = Vocab.load(layout.vocab("char")).key
    lengthen_train(layout)
    assert Vocab.load(layout.vocab("char")).key == key
    assert {name: model.info for name, model in seqlm.open(layout.root).items()} == before


@pytest.mark.parametrize("names", [["model.json"], ["weights.safetensors"], ["model.json", "weights.safetensors"]])
def test_exchanged_files_of_two_runs_are_refused(names: list[str], layout: Layout) -> None:
    for name in names:
        small, other = (layout.run(run) / name for run in ("small", "other"))
        content = small.read_bytes()
        small.write_bytes(other.read_bytes())
        other.write_bytes(content)
    for run in ("small", "other"):
        with pytest.raises(DataError, match=r"(describes another model|does not match).*: train again$"):
            seqlm.open(layout.root)[run]


def test_a_description_of_another_version_is_refused(copied: Layout, tmp_path: Path) -> None:
    seqlm.open(copied.root)["small"].save(tmp_path / "saved")
    (mixture, *_) = copied.mixtures.glob("*.json")
    for path, name, advice in (
        (copied.scores_of_run("small") / "small+dynamic" / "score.json", "small+dynamic", "run the pipeline again"),
        (mixture, mixture.stem, "run the pipeline again"),
        (copied.ngrams("char") / "models.json", "char-kneser-ney-3", "count again"),
        (copied.run("small") / "model.json", "small", "train again"),
        (tmp_path / "saved" / "export.json", "small", "save the models again"),
    ):
        change_stored(path, lambda value: value.update(format=4))
        with pytest.raises(DataError, match=rf"{re.escape(path.name)}: not in format 10, .*: {advice}$"):
            seqlm.open(tmp_path / "saved" if path.name == "export.json" else copied.root)[name]


def test_a_model_that_was_made_of_others_is_refused_after_they_changed(copied: Layout) -> None:
    write_run(copied, "small", max_tokens=20, sampling="sequential")
    lengthen_train(copied)
    models = seqlm.open(copied.root)
    assert models["small"].info.train_tokens == 20
    for name in ("small+dynamic", "char-kneser-ney-4+dynamic"):
        with pytest.raises(DataError, match=r"score\.json: describes '.*' as it was made before"):
            models[name]


def test_a_mixture_loads_each_vocabulary_and_each_table_once(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    load, read = mock.Mock(wraps=Vocab.load), mock.Mock(wraps=read_array)
    monkeypatch.setattr(Vocab, "load", load)
    monkeypatch.setattr("seqlm.ngrams.models.registry.read_array", read)
    again = seqlm.open(models.layout.root)
    for name in ("char-kneser-ney-3+char-by-word-kneser-ney-3", "small", "char-kneser-ney-4+dynamic"):
        again[name].score(TEXT)
    assert sorted(call.args[0].parent.name for call in load.call_args_list) == ["char", "word"]
    tables = [call.args[0] for call in read.call_args_list]
    assert len(tables) == len(set(tables)) > 0


def test_exchanged_scores_are_refused(copied: Layout) -> None:
    folder = copied.scores_of_ngrams("char") / "char-kneser-ney-3"
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("char-kneser-ney-2"), folder)
    with pytest.raises(DataError, match=r"describes another model, 'char-kneser-ney-2'"):
        load_scores(folder)


TINY = {"num_hiddens": 8, "num_layers": 1, "num_epochs": 1, "batch_size": 4, "num_steps": 5}
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


def test_the_light_installation_trains_and_scores_all_that_needs_no_extra(run: Layout, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = " ".join(re.split(r"[^\w.-]", line)[0] for line in project["dependencies"])
    code = LIGHT + (
        "import seqlm\n"
        "assert not {'numpy', 'pandas', 'numba', 'torch'} & set(sys.modules)\n"
        f"folder, settings = {str(tmp_path)!r}, {TINY!r}\n"
        "for model in ('lstm', 'gru', 'rnn', 'scratch'):\n"
        "    options = {'dropout': 0.0, 'checkpoint': f'{folder}/{model}.checkpoint', 'progress': False}\n"
        "    seqlm.fit_network('the sea came in\\n' * 40, model, **settings, **options).save(f'{folder}/{model}')\n"
        "    seqlm.open(f'{folder}/{model}')[model].score('the sea')\n"
        f"models = seqlm.open({str(run.root)!r})\n"
        "names = ['char-kneser-ney-3', 'char-by-word-kneser-ney-3', 'small', 'char-kneser-ney-3+dynamic']\n"
        f"for name in [*names, {MIXTURE!r}]:\n"
        f"    model = models[name]\n"
        f"    assert model.score({TEXT!r}).tokens == len(model.surprisals({TEXT!r})) == 15\n"
        "    assert len(model.generate('the', 5)) >= 5\n"
        "for name in ('attentive', 'subword-kneser-ney-3', 'transformer'):\n"
        "    try:\n"
        f"        models[name].score({TEXT!r}) if name in models else seqlm.fit_network({TEXT!r} * 9, name)\n"
        "    except seqlm.SeqlmError as error:\n"
        "        print(error)\n"
    )
    assert succeeded(run_python(code, base)).splitlines() == [
        "a network (transformer, device 'cpu') needs the package torch: pip install 'seqlm[torch]'",
        "a model over subwords needs the package tokenizers: pip install 'seqlm[subwords]'",
        "a network (transformer, device 'cpu') needs the package torch: pip install 'seqlm[torch]'",
    ]
