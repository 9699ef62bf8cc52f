"""The ngrams stage, by hand, and its stored models."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.storage import load_models, save_models
from seqlm.vocab.corpus_building import SPLITS, build_corpus
from small_runs import write_texts
from stages_by_hand import RunStage

LINES = "the sea came in and the sea went out\nand the sea came in\n"


def prepare(layout: Layout) -> None:
    write_texts(layout, LINES * 5)
    build_corpus({split: layout.split(split) for split in SPLITS}, layout.corpus("word"), "word", "", 0, [])


def test_the_stage_describes_the_whole_text_and_counts_train(run_stage: RunStage, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    prepare(layout)
    result = run_stage("ngrams", "--kind", "word")
    assert result.returncode == 0, result.stderr
    frequent = pd.read_csv(layout.reports("ngrams", "word", "frequencies.csv"))
    top = frequent[frequent["n"] == 2].iloc[0]
    # "the sea" stands three times in each pair of lines, five pairs a split, three splits.
    assert (top["ngram"], top["count"]) == ("the sea", 45)
    summary = json.loads(layout.reports("ngrams", "word", "summary.json").read_text())
    assert summary["tokens"] == 14 * 5 * 3
    models = load_models(layout.ngrams("word"), 8)
    assert list(models) == ["uniform", *(f"laplace-{n}" for n in (1, 2, 3)), *(f"kneser-ney-{n}" for n in (1, 2, 3))]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("    char: 6", "    char: 0", "ngrams.max_order.char = 0: should be greater than or equal to 1"),
        ("epsilons: auto", "epsilons: [1, -1, 1]", "ngrams.laplace.epsilons"),
        ("epsilons: auto", "epsilons: [1, 1]", "epsilons must hold one value for each order"),
        ("    word: 3", "    words: 3", "ngrams.max_order.words"),
    ],
)
def test_bad_settings_end_with_code_2(old: str, new: str, complaint: str, run_stage: RunStage, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    prepare(layout)
    assert old in layout.params.read_text()
    layout.params.write_text(layout.params.read_text().replace(old, new))
    result = run_stage("ngrams", "--kind", "word")
    assert result.returncode == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not layout.ngrams("word").exists()


def test_stored_counts_are_checked(tmp_path: Path) -> None:
    counts = count_ngrams(np.array([1, 2, 1, 2, 0]), 3, 2)
    save_models(tmp_path, counts, (1.0, 1.0), "unigram")
    with pytest.raises(DataError, match="counted over 3 tokens, the vocabulary has 4"):
        load_models(tmp_path, 4)
    path = tmp_path / "keys_2.npy"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="does not match the SHA-256"):
        load_models(tmp_path, 3)
    description = json.loads((tmp_path / "models.json").read_text())
    (tmp_path / "models.json").write_text(json.dumps(description | {"format": 9}))
    with pytest.raises(DataError, match="not of format 2"):
        load_models(tmp_path, 3)
