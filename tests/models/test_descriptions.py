"""A model's own folder says what the model is, whatever happens to the settings."""

import json
import re
import shutil
from pathlib import Path
from unittest import mock

import pytest

import seqlm
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.stored import read_array
from seqlm.models.index import Models
from seqlm.pipeline.score.scores import load_scores
from seqlm.vocab.vocabulary import Vocab
from small_runs import change_stored, write_models, write_run
from smoke import change_params
from stages_by_hand import in_this_process, prepare, succeeded

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
