"""A run over subwords: trained, scored, and used on another text."""

import json
import re
from pathlib import Path

import pytest

import small_training
from seqlm.heldout.scored_text import read_beginning_of_train
from seqlm.score.store import TRAIN_SUBSET, load_score
from seqlm.vocab.corpus import load_split
from seqlm.vocab.vocabulary import Vocab
from stages_by_hand import RunStage, succeeded

TEXT = "the sea came in and the sea went out\nand in came the tide\n" * 30


def test_a_run_over_subwords(run_stage: RunStage, tmp_path: Path) -> None:
    layout = small_training.prepare_stage(tmp_path, TEXT, token="subword", max_tokens=200)
    for stage, *arguments in (("train", "--model", "x"), ("heldout", "--kind", "subword"), ("score", "--model", "x")):
        succeeded(run_stage(stage, *arguments))
    headline = json.loads(layout.reports("score", "x", "metrics.json").read_text())
    assert 0 < headline["test_bits"] < 8
    # The run saw 200 tokens of train; the characters of all but the first are scored.
    vocab, beginning = Vocab.load(layout.vocab("subword")), read_beginning_of_train(layout, "subword", 200)
    seen = vocab.join(vocab.decode(load_split(layout.corpus("subword"), "train")[:200].tolist()))
    assert TEXT.replace("\n", "").startswith(seen)
    assert beginning.scored_chars == len(seen) - beginning.ends[0]
    score = load_score(layout.scores_of_run("x") / "x")
    assert score.metrics[TRAIN_SUBSET]["tokens"] == 199
    assert score.info.train_chars == pytest.approx(len(seen), rel=0.05)

    (tmp_path / "my.txt").write_text("The sea, and ïn it\n")
    printed = succeeded(run_stage("score", "--text", "my.txt", "--model", "x"))
    assert re.search(r"x: perplexity \d+\.\d+ per subword, \d+\.\d+ bits per character, .* 0\.0% of them", printed)
    shown = re.findall(r'title=([\d.]+|"[^"]*")>(.)<', (tmp_path / "surprisal.html").read_text())
    assert "".join(character for _, character in shown) == "the sea and n it"
