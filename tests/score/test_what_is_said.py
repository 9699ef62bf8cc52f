"""Stages that take minutes say how each model did, and how long it took."""

import re
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from small_runs import write_models
from stages_by_hand import RunStage

SECONDS = r"\d+\.\d s"


@pytest.fixture
def trained(tmp_path: Path) -> Layout:
    return write_models(tmp_path)


@pytest.mark.usefixtures("trained")
def test_scoring_says_each_model_and_each_setting_tried(run_stage: RunStage) -> None:
    said = run_stage("score", "--run", "small").stdout
    assert re.search(rf"^small scored: {SECONDS}$", said, flags=re.MULTILINE)
    tried = rf"^small\+dynamic, lr [\d.]+, decay [\d.]+: \d\.\d+ bits per character on val, {SECONDS}$"
    assert len(re.findall(tried, said, flags=re.MULTILINE)) == 3 * 2  # as many settings as params.yaml has
    said = run_stage("score", "--kind", "word").stdout
    one = rf"^word-kneser-ney-2: \d\.\d+ bits per character on val, {SECONDS}$"
    assert re.search(one, said, flags=re.MULTILINE)


@pytest.mark.usefixtures("trained")
def test_writing_says_each_model_and_only_the_text_by_hand(run_stage: RunStage) -> None:
    said = run_stage("generate").stdout.splitlines()
    assert len(said) == 1 + 2 * 3  # the run, and of each kind Laplace and Kneser-Ney
    assert all(re.fullmatch(rf"[a-z0-9-]+: 6 samples, {SECONDS}", line) for line in said)
    by_hand = run_stage("generate", "--model", "small", "--temperature", "0", "--prefix", "the sea").stdout
    assert by_hand.startswith("small, temperature 0: the sea")
    assert by_hand.count("\n") == 1
