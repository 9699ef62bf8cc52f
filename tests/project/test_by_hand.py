"""A stage by hand: every option that only a person gives writes nothing tracked, and nothing is removed unasked."""

import re
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML

from seqlm.configure.runs import resolve_runs
from seqlm.core.files import write_checksummed
from seqlm.core.layout import Layout
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.storage import save_models
from seqlm.rnn.building import build_network, save_network
from seqlm.train.settings import CONFIG_FORMAT
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.kinds.registry import KINDS
from small_runs import ngram_settings
from smoke import ROOT
from stages_by_hand import RunStage, in_a_process, in_this_process
from subwords import build


def put_runs(layout: Layout, *names: str, of_ghosts: bool = False) -> None:
    """Write the settings of runs that were never trained, and their weights; of ghosts, the weights alone."""
    params = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    values = params | {"num_threads": 1, "runs": {name: {"token": "char", "num_hiddens": 8} for name in names}}
    for name, config in resolve_runs(values, source="").items():
        if not of_ghosts:
            write_checksummed(layout.config(name), {"format": CONFIG_FORMAT} | config.model_dump())
        save_network(layout.run(name), name, config, 28, build_network(config, 28, 0).weights())


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A folder with all that the stage reads: one untrained run, and the models that count."""
    layout = Layout(tmp_path)
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    layout.splits.mkdir(parents=True)
    for split in SPLITS:
        # Every letter: 26, the space and <unk> make 28 tokens.
        layout.split(split).write_text("the quick brown fox jumps over the lazy dog traveller time\n" * 20)
    for kind in KINDS:
        vocab = build({split: layout.split(split) for split in SPLITS}, layout.corpus(kind), kind, "")
        counts = count_ngrams(np.asarray(load_split(layout.corpus(kind), "train")), len(vocab), 2)
        save_models(layout.ngrams(kind), counts, ngram_settings(1.0, 1.0))
    put_runs(layout, "x")
    return layout


OPTIONS = {
    "--prefix": "the fox", "--model": "x", "--temperature": "1", "--num-preds": "5", "--seed": "0",
    "--on-unknown": "unk",
}  # fmt: skip


def test_every_option_of_generate_is_tried(run_stage: RunStage) -> None:
    offered = re.findall(r"^  (--[a-z-]+)", run_stage("generate", "--help").stdout, re.MULTILINE)
    assert set(OPTIONS) == set(offered) - {"--root", "--help"}


@pytest.mark.parametrize("option", OPTIONS)
def test_any_option_of_generate_prints_and_leaves_the_samples(option: str, layout: Layout) -> None:
    result = in_this_process(layout.root)("generate", option, OPTIONS[option])
    assert result.returncode == 0, result.stderr
    assert "x, temperature" in result.stdout
    assert not layout.reports("generate").exists()


def test_without_options_generate_writes_its_samples(layout: Layout) -> None:
    result = in_this_process(layout.root)("generate")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in layout.reports("generate").iterdir()) == ["samples.json", "samples.md"]


# These tests' own Python stands where DVC would: above the stage, in a process of its own.
UNDER_DVC = {"DVC_STAGE": "a-stage"}


@pytest.mark.parametrize("under_dvc", [False, True])
def test_ghosts_go_under_dvc_alone(under_dvc: bool, layout: Layout) -> None:
    put_runs(layout, "ghost", of_ghosts=True)
    result = in_a_process(layout.root)("generate", **(UNDER_DVC if under_dvc else {}))
    assert result.returncode == 0, result.stderr
    assert layout.run("x").exists()
    assert layout.run("ghost").exists() != under_dvc


@pytest.mark.parametrize("broken", ["data/corpus/word/vocab.json", "data/models/ngrams/char", "data/models/runs/x"])
def test_nothing_goes_before_every_input_is_known_to_be_whole(broken: str, layout: Layout) -> None:
    put_runs(layout, "ghost", of_ghosts=True)
    (layout.root / broken).rename(layout.root / "elsewhere")
    result = in_a_process(layout.root)("generate", **UNDER_DVC)
    assert result.returncode == 3, result.stderr
    assert layout.run("ghost").exists()


@pytest.mark.parametrize(("stage", "configs"), [("evaluate", "missing"), ("generate", "empty"), ("report", "empty")])
def test_without_runs_nothing_is_a_ghost(stage: str, configs: str, run_script: RunStage, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    kept = [layout.run("x"), layout.scores_of_run("x"), layout.reports("train", "x"), layout.reports("score", "x")]
    for folder in kept:
        folder.mkdir(parents=True)
    if configs == "empty":
        layout.configs.mkdir()
    result = run_script(stage, **UNDER_DVC)
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith("error: ")
    assert all(folder.exists() for folder in kept)
