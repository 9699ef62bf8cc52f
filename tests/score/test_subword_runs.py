"""A run over subwords goes all the way: trained, scored, asked for a text of one's own."""

import json
import re
from pathlib import Path

import small_training
from seqlm.score.heldout.splits import TRAIN_SUBSET, read_streams
from seqlm.vocab.corpus_building import load_split
from seqlm.vocab.vocabulary import Vocab
from stages_by_hand import RunStage

TEXT = "the sea came in and the sea went out\nand in came the tide\n" * 30


def test_a_run_over_subwords(run_stage: RunStage, tmp_path: Path) -> None:
    layout = small_training.prepare_stage(tmp_path, TEXT, token="subword", max_tokens=200)
    assert run_stage("train", "--name", "x").returncode == 0
    result = run_stage("score", "--run", "x")
    assert result.returncode == 0, result.stderr
    streams = read_streams(layout, "subword", None, 200)
    headline = json.loads(layout.reports("score", "x", "metrics.json").read_text())
    assert 0 < headline["test_bits"] < 8
    # Of train, the run saw 200 tokens, and the characters of all but the first count.
    vocab = Vocab.load(layout.vocab("subword"))
    seen = vocab.join(vocab.decode(load_split(layout.corpus("subword"), "train")[:200].tolist()))
    assert streams[TRAIN_SUBSET].scored_chars == len(seen) - streams[TRAIN_SUBSET].ends[0]
    assert TEXT.replace("\n", "").startswith(seen)

    (tmp_path / "my.txt").write_text("The sea, and ïn it\n")
    result = run_stage("evaluate", "--text", "my.txt", "--run", "x")
    assert result.returncode == 0, result.stderr
    assert re.search(
        r"x: perplexity \d+\.\d+ per subword, \d+\.\d+ bits per character, .* 0\.0% of them", result.stdout
    )
    shown = re.findall(r'title="([^"]*)">(.)<', (tmp_path / "surprisal.html").read_text())
    assert "".join(character for _, character in shown) == "the sea and n it"
