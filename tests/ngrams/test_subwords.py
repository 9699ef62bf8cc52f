"""n-grams of subwords: described as text, and written as ARPA with every piece in one field."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqlm.core.layout import Layout
from seqlm.ngrams.arpa.reading import read_arpa
from seqlm.ngrams.models.storage import load_kneser_ney
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.kinds.subword import BYTE_TOKENS
from seqlm.vocab.vocabulary import Vocab
from stages_by_hand import RunStage
from subwords import build


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.splits.mkdir(parents=True)
    texts = {split: layout.split(split) for split in SPLITS}
    for split, path in texts.items():
        # Train has no ï: in test it is two bytes.
        path.write_text(
            "the sea came in\nand the tide\n" * 30 + ("naïve\n" if split == "test" else ""), encoding="utf-8"
        )
    build(texts, layout.corpus("subword"), "subword", "\n")
    return layout


def test_the_whole_text_is_described_in_its_pieces(run_stage: RunStage, layout: Layout) -> None:
    result = run_stage("ngrams", "--kind", "subword")
    assert result.returncode == 0, result.stderr
    streams = [load_split(layout.corpus("subword"), split) for split in SPLITS]
    # A line end joins the splits.
    whole = [int(index) for stream in streams for index in stream]
    summary = json.loads(layout.reports("ngrams", "subword", "summary.json").read_text())
    assert summary["tokens"] == len(whole) + 2
    assert summary["vocabulary_size"] == len(set(whole)) + 1
    frequent = pd.read_csv(layout.reports("ngrams", "subword", "frequencies.csv"), keep_default_na=False)
    # 30 copies in each of three texts.
    pairs = frequent[frequent["n"] == 2].set_index("ngram")["count"]
    assert pairs[" sea came"] == 90
    assert not frequent["ngram"].str.contains(BYTE_TOKENS[0xC3]).any()


def test_pieces_stand_in_an_arpa_file(run_stage: RunStage, layout: Layout) -> None:
    assert run_stage("ngrams", "--kind", "subword").returncode == 0
    assert run_stage("ngrams", "--kind", "subword", "--arpa", "subword.arpa").returncode == 0
    vocab = Vocab.load(layout.vocab("subword"))
    read = read_arpa(layout.root / "subword.arpa")
    assert set(read.tokens) == {"<s>", "</s>", *vocab.tokens}
    model, ids = load_kneser_ney(layout.ngrams("subword"), len(vocab)), load_split(layout.corpus("subword"), "test")
    found = read.probs(read.encode(vocab.decode(ids.tolist())))
    assert np.log(found) == pytest.approx(np.log(model.probs(ids)), rel=1e-5)
