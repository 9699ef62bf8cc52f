"""The evaluate stage by hand, before a training run has ended, and after scores changed."""

from pathlib import Path

from seqlm.core.files import read_csv, write_csv
from seqlm.core.layout import Layout
from seqlm.vocab.kinds import KINDS
from small_runs import write_models
from smoke import ROOT, change_params
from stages_by_hand import RunStage, succeeded

SETTINGS = {"score.dynamic.lrs": [0.001], "score.dynamic.decays": [0.01], "score.dynamic_counts": None}


def models(layout: Layout) -> set[str]:
    return set(read_csv(layout.reports("evaluate", "table.csv"))["model"])


def test_what_was_trained_and_scored_is_compared(run_stage: RunStage, tmp_path: Path) -> None:
    layout = write_models(tmp_path)
    change_params(layout.params, SETTINGS)
    for arguments in (("--model", "small"), *(("--kind", kind) for kind in KINDS)):
        succeeded(run_stage("score", *arguments))
    history = read_csv(Layout(ROOT).reports("train", "lstm", "history.csv")).assign(run="small")
    write_csv(layout.reports("train", "small", "history.csv"), history)
    assert succeeded(run_stage("evaluate")).startswith("the best of ")
    assert "small+dynamic" in models(layout)
    # A dynamic model that is no longer scored is gone.
    change_params(layout.params, {"score.dynamic": None})
    succeeded(run_stage("score", "--model", "small"))
    succeeded(run_stage("evaluate"))
    assert models(layout) >= {"small", "char-kneser-ney-3"}
    assert not any("dynamic" in model for model in models(layout))
