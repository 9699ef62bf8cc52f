"""Texts that models generate, what is measured of them, and the prefixes that they continue."""

import json
import re
from pathlib import Path

import pytest

from seqlm.core.errors import ParamsError
from seqlm.core.layout import Layout
from seqlm.core.settings import check
from seqlm.models.index import Models
from seqlm.pipeline.generate.samples import copied_length, generate_samples, repeated_share, resolve_prefixes
from seqlm.pipeline.generate.settings import GenerateParams
from seqlm.vocab.kinds import KINDS
from small_runs import ngram_models, write_models
from small_training import prepare_stage
from stages_by_hand import RunStage, refused, run_command, succeeded


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


def test_repeats_and_copies_are_measured() -> None:
    # 16 characters have 9 substrings of eight; the last one repeats the first.
    assert repeated_share("abcdefghabcdefgh") == pytest.approx(1 / 9)
    assert repeated_share("short") == 0
    # "the sea", nothing, nothing, " sea", " sea"
    for text, length in {"the sea xyz": 7, "qqq": 0, "": 0, "a seat": 4, "漢字 at sea": 4}.items():
        assert copied_length(text, "near the sea") == length


def test_the_stage_writes_samples_of_each_model_and_logs_them(layout: Layout, run_stage: RunStage) -> None:
    lines = succeeded(run_stage("generate")).splitlines()
    # The run, and for each kind of token the highest order of each smoothing method.
    models = ["small", *(name for kind in KINDS for name in ngram_models(kind) if name.endswith("-3"))]
    assert [line.partition(":")[0] for line in lines] == models
    said = r".+: 6 samples, .* s; .* copied from the training set has \d+ characters?"
    assert [line for line in lines if not re.fullmatch(said, line)] == []
    stored = json.loads(layout.reports("generate", "samples.json").read_text())
    assert list(dict.fromkeys(sample["model"] for sample in stored)) == models


def test_another_seed_draws_another_text(layout: Layout) -> None:
    models = [Models(layout, num_threads=1)["small"]]
    first, again, other = (next(generate_samples(models, ["the sea"], [1.0], 20, seed, layout)) for seed in (1, 1, 2))
    assert first == again != other


def test_by_hand_texts_are_printed(layout: Layout) -> None:
    command = "generate", ".", "the sea", "--temperature", "0"
    printed = succeeded(run_command(layout.root, *command, "--name", "small"))
    assert printed.startswith("the sea")
    assert printed.count("\n") == 1
    result = run_command(layout.root, *command, "--name", "nope")
    refused(result, 2, "error: there is no model 'nope': choose from small, char-uniform, ")
    assert result.stdout == ""
    refused(run_command(layout.root, *command), 2, "holds several models: choose one with --name: small, char-uniform")


def test_prefixes_are_those_of_the_settings_or_the_beginning_of_val(tmp_path: Path) -> None:
    layout = prepare_stage(tmp_path, "the sea came in and the sea went out again\n")
    # "the sea came in and " has twenty characters: the piece ends before its last space.
    assert resolve_prefixes("auto", layout) == ["the sea came in and", "the sea went out"]
    assert resolve_prefixes(["sea", "a"], layout) == ["sea", "a"]
    # What train never has is not continued.
    assert resolve_prefixes(["time traveller", "the sea went"], layout) == ["the sea went"]
    assert resolve_prefixes(["time traveller", "xyz"], layout) == resolve_prefixes("auto", layout)
    others = {"temperatures": [0.0], "num_preds": 1}
    assert check({"prefixes": "auto", **others}, "generate", GenerateParams, source="x").prefixes == "auto"
    for wrong in ("none_such", [], [""], None, 3):
        with pytest.raises(ParamsError, match=r"generate\.prefixes"):
            check({"prefixes": wrong, **others}, "generate", GenerateParams, source="x")
