"""A model's own folder says what the model is, whatever happens to the settings."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqlm
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.stored import read_array, write_checksummed
from seqlm.pipeline.score.scores import Scores, load_scores
from seqlm.vocab.vocabulary import Vocab
from small_runs import write_models, write_run
from smoke import change_params
from stages_by_hand import in_this_process, prepare, refused, succeeded

TEXT = "the sea came in"


def rewrite(path: Path, **changes: Any) -> None:
    """Change a stored description and its checksum."""
    value = json.loads(path.read_text())
    del value["checksum"]
    write_checksummed(path, value | changes)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = write_models(prepare(tmp_path))
    write_run(layout, "other", model="gru", max_tokens=20)
    return layout


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
    vocab = Vocab.load(layout.vocab("char"))
    splits = json.loads(layout.vocab("char").read_text())["splits"]
    splits["train"]["num_chars"] *= 10
    rewrite(layout.vocab("char"), splits=splits)
    assert Vocab.load(layout.vocab("char")).key == vocab.key
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


def test_a_description_of_another_version_is_refused(scored: tuple[Layout, dict[str, Scores]], tmp_path: Path) -> None:
    shutil.copytree(scored[0].root, tmp_path / "run")
    layout = Layout(tmp_path / "run")
    seqlm.open(layout.root)["small"].save(tmp_path / "saved")
    (mixture, *_) = layout.mixtures.glob("*.json")
    advice_of = {
        layout.scores_of_run("small") / "small+dynamic" / "score.json": ("small+dynamic", "run the pipeline again"),
        mixture: (mixture.stem, "run the pipeline again"),
        layout.ngrams("char") / "models.json": ("char-kneser-ney-3", "count again"),
        layout.run("small") / "model.json": ("small", "train again"),
        tmp_path / "saved" / "export.json": ("small", "save the models again"),
    }
    for path, (name, advice) in advice_of.items():
        rewrite(path, format=4)
        with pytest.raises(DataError, match=rf"{re.escape(path.name)}: not in format 10, .*: {advice}$"):
            seqlm.open(tmp_path / "saved" if path.name == "export.json" else layout.root)[name]


def test_a_model_that_was_made_of_others_is_refused_after_they_changed(
    scored: tuple[Layout, dict[str, Scores]], tmp_path: Path
) -> None:
    shutil.copytree(scored[0].root, tmp_path / "run")
    layout = Layout(tmp_path / "run")
    write_run(layout, "small", max_tokens=20, sampling="sequential")
    splits = json.loads(layout.vocab("char").read_text())["splits"]
    splits["train"]["num_chars"] *= 10
    rewrite(layout.vocab("char"), splits=splits)
    models = seqlm.open(layout.root)
    assert models["small"].info.train_tokens == 20
    for name in ("small+dynamic", "char-kneser-ney-4+dynamic"):
        with pytest.raises(DataError, match=r"score\.json: describes '.*' as it was made before"):
            models[name]


def test_a_mixture_loads_each_vocabulary_and_each_table_once(
    scored: tuple[Layout, dict[str, Scores]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, _ = scored
    loaded = Counter[str]()
    load = Vocab.load.__func__  # type: ignore[attr-defined]

    def counted_load(cls: type[Vocab], path: Path, kind: str | None = None) -> Vocab:
        loaded[f"vocab {path.parent.name}"] += 1
        return load(cls, path, kind)

    def counted_read(path: Path, *args: Any) -> np.ndarray:
        loaded[str(path)] += 1
        return read_array(path, *args)

    monkeypatch.setattr(Vocab, "load", classmethod(counted_load))
    monkeypatch.setattr("seqlm.ngrams.models.registry.read_array", counted_read)
    models = seqlm.open(layout.root)
    for name in ("char-kneser-ney-3+char-by-word-kneser-ney-3", "small", "char-kneser-ney-4+dynamic"):
        models[name].score(TEXT)
    assert loaded["vocab char"] == loaded["vocab word"] == 1
    assert set(loaded.values()) == {1}


def test_exchanged_scores_are_refused(scored: tuple[Layout, dict[str, Scores]], tmp_path: Path) -> None:
    folder = tmp_path / "char-kneser-ney-3"
    shutil.copytree(scored[0].scores_of_ngrams("char") / "char-kneser-ney-2", folder)
    with pytest.raises(DataError, match=r"describes another model, 'char-kneser-ney-2'"):
        load_scores(folder)
