"""Stages run by hand: options write no tracked file, and only a stage under DVC removes stale runs."""

import re
from pathlib import Path

import pytest

from seqlm.core.layout import Layout
from small_runs import write_models, write_run
from stages_by_hand import RunStage

# Every letter: 26 letters, the space and <unk> make 28 tokens.
TEXT = "the quick brown fox jumps over the lazy dog traveller time\n" * 20
UNDER_DVC = {"DVC_STAGE": "a-stage"}
OPTIONS = {
    "--prefix": "the fox", "--model": "small", "--temperature": "1", "--num-preds": "5", "--seed": "0",
    "--on-unknown": "unk",
}  # fmt: skip


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with everything that ``generate`` reads."""
    return write_models(tmp_path, TEXT)


def test_each_option_of_generate_prints_and_writes_no_samples(run_stage: RunStage, layout: Layout) -> None:
    offered = re.findall(r"^  (--[a-z-]+)", run_stage("generate", "--help").stdout, re.MULTILINE)
    assert set(OPTIONS) == set(offered) - {"--root", "--help"}
    for option, value in OPTIONS.items():
        result = run_stage("generate", option, value)
        assert result.returncode == 0, result.stderr
        assert "small, temperature" in result.stdout
    assert not layout.reports("generate").exists()


@pytest.mark.parametrize("environment", [{}, UNDER_DVC], ids=["by hand", "under DVC"])
def test_only_under_dvc_generate_removes_stale_runs(
    environment: dict[str, str], run_stage: RunStage, layout: Layout
) -> None:
    write_run(layout, "stale", vocab_size=28)
    result = run_stage("generate", **environment)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in layout.reports("generate").iterdir()) == ["samples.json", "samples.md"]
    assert layout.run("small").exists()
    assert layout.run("stale").exists() == (environment == {})


@pytest.mark.parametrize(
    "missing", ["data/corpus/word/vocab.json", "data/models/ngrams/char", "data/models/runs/small"]
)
def test_a_stage_with_a_missing_input_removes_nothing(missing: str, run_stage: RunStage, layout: Layout) -> None:
    write_run(layout, "stale", vocab_size=28)
    (layout.root / missing).rename(layout.root / "elsewhere")
    result = run_stage("generate", **UNDER_DVC)
    assert result.returncode == 3, result.stderr
    assert layout.run("stale").exists()


@pytest.mark.parametrize("stage", ["evaluate", "generate", "report"])
@pytest.mark.parametrize("configs", ["missing", "empty"])
def test_without_any_config_no_run_is_stale(stage: str, configs: str, run_stage: RunStage, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    kept = [layout.run("x"), layout.scores_of_run("x"), layout.reports("train", "x"), layout.reports("score", "x")]
    for folder in [*kept, *([layout.configs] if configs == "empty" else [])]:
        folder.mkdir(parents=True)
    result = run_stage(stage, **UNDER_DVC)
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith("error: ")
    assert all(folder.exists() for folder in kept)
