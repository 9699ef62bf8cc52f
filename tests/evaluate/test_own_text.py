"""A text of one's own under trained models: `evaluate.py --text`."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from workspace import ROOT, RunStage
from seqlm.core.files import write_sealed
from seqlm.rnn.scoring import stream_nats
from seqlm.ngrams.counting import count_ngrams
from seqlm.ngrams.model_files import save_models
from seqlm.core.settings import read_params
from seqlm.train.settings import CONFIG_FORMAT, RunConfig
from seqlm.configure.runs import resolve_runs
from seqlm.rnn.building import load_model, model_weights, save_model
from seqlm.train.trainer import Trainer
from seqlm.vocab.streams import SPLITS, build_corpus, load_split

FOLDERS = ("--configs", "configs", "--runs", "runs", "--ngrams", "ngrams", "--corpus", "corpus")


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Make a folder with a trained run `small` and n-gram models of both kinds."""
    texts = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in texts.values():
        path.write_text("the sea came in\nand the sea went out\n" * 20)
    for kind in ("char", "word"):
        vocab = build_corpus(texts, tmp_path / "corpus" / kind, kind, " ", 0, [])
        counts = count_ngrams(load_split(tmp_path / "corpus" / kind, "train"), len(vocab), 3)
        save_models(tmp_path / "ngrams" / kind, counts, (1.0, 1.0, 1.0), "unigram")
    vocab = build_corpus(texts, tmp_path / "corpus" / "char", "char", " ", 0, [])
    config = small()
    made = Trainer(config, len(vocab), np.tile(np.arange(1, 9), 20), np.arange(1, 9), torch.device("cpu"))
    save_model(tmp_path / "runs" / "small", config, len(vocab), model_weights(made.model))
    (tmp_path / "configs").mkdir()
    write_sealed(tmp_path / "configs" / "small.json", {"format": CONFIG_FORMAT} | config.model_dump())
    return tmp_path


def small() -> RunConfig:
    values = read_params(ROOT / "params.yaml") | {"num_threads": 1}
    values["runs"] = {"small": {"num_hiddens": 8, "batch_size": 2, "num_steps": 5, "max_tokens": None}}
    return resolve_runs(values, source="params.yaml")["small"]


def test_the_text_is_scored_and_shown(run_stage: RunStage, trained: Path) -> None:
    (trained / "my<b>.txt").write_text("The SEA, <i>came</i>!\n")
    result = run_stage("evaluate", *FOLDERS, "--text", "my<b>.txt", "--run", "small", "--run", "word-kneser-ney-2")
    assert result.returncode == 0, result.stderr
    # Cleaned as the corpus: "the sea i came i".
    text = "the sea i came i"
    vocab = json.loads((trained / "corpus/char/vocab.json").read_text())["tokens"]
    ids = np.array([vocab.index(character) for character in text])
    model = load_model(trained / "runs/small", torch.device("cpu"))
    expected = math.exp(stream_nats(model, ids).mean())
    assert f"small: perplexity {expected:.3f} per char" in result.stdout
    assert "word-kneser-ney-2: perplexity" in result.stdout
    # Of the four scored words, "sea i came i", the two i are not in train.
    assert "4 tokens, 50.0% of them unknown" in result.stdout
    page = (trained / "surprisal.html").read_text()
    assert "my&lt;b&gt;.txt" in page
    assert "my<b>" not in page
    assert page.count('class="passage"') == 2


def test_all_runs_are_the_default(run_stage: RunStage, trained: Path) -> None:
    (trained / "my.txt").write_text("the sea\n")
    result = run_stage("evaluate", *FOLDERS, "--text", "my.txt", "--page", "out/page.html")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("small: perplexity")
    assert (trained / "out/page.html").exists()


@pytest.mark.parametrize(
    ("content", "run", "code", "complaint"),
    [
        (b"the sea", "nope", 2, "--run nope: no such model; there are small, char-kneser-ney-N"),
        (b"the sea", "word-kneser-ney-9", 2, "--run word-kneser-ney-9: no such model"),
        (b"12345", "small", 3, "too little is left after cleaning"),
        (b"sea", "word-kneser-ney-2", 3, "the text has 1 tokens of kind word"),
        (b"\xff\xfe", "small", 3, "UTF-16"),
        (b"sea \xe9", "small", 3, "not UTF-8 at byte 4"),
    ],
)
def test_wrong_texts_and_names_end_with_one_line(
    content: bytes, run: str, code: int, complaint: str, run_stage: RunStage, trained: Path
) -> None:
    (trained / "my.txt").write_bytes(content)
    result = run_stage("evaluate", *FOLDERS, "--text", "my.txt", "--run", run)
    assert result.returncode == code
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (trained / "surprisal.html").exists()
