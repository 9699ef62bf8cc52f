"""`stages/ngrams.py --arpa` writes the model that was counted before, and nothing else."""

from pathlib import Path

import pytest

from seqlm.ngrams.arpa.reading import read_arpa
from seqlm.ngrams.arpa.writing import write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey
from seqlm.ngrams.models.storage import load_kneser_ney, load_models, save_models
from seqlm.vocab.corpus_building import SPLITS, build_corpus, load_split
from seqlm.vocab.vocabulary import Vocab
from stages_by_hand import RunStage

LINES = "the sea came in and the sea went out\nand the sea came in\n"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """The folder of a pipeline that has counted words up to order 3."""
    texts = {split: tmp_path / f"{split}.txt" for split in SPLITS}
    for path in texts.values():
        path.write_text(LINES * 5)
    corpus = tmp_path / "data" / "corpus" / "word"
    build_corpus(texts, corpus, "word", "", 0, [])
    counts = count_ngrams(load_split(corpus, "train"), len(Vocab.load(corpus / "vocab.json", "word")), 3)
    save_models(tmp_path / "data" / "models" / "ngrams" / "word", counts, (1.0, 1.0), "unigram")
    return tmp_path


def test_the_model_that_was_counted_is_written_and_nothing_else(run_stage: RunStage, counted: Path) -> None:
    # Nothing that counting needs is left: neither the settings, nor the text, nor the encoded splits.
    for path in [counted / "params.yaml", *counted.glob("*.txt"), *counted.glob("data/corpus/word/*.npy")]:
        path.unlink()
    before = contents(counted)
    result = run_stage("ngrams", "--kind", "word", "--arpa", "out/word.arpa")
    assert result.returncode == 0, result.stderr
    assert "Kneser-Ney of order 3 over 8 tokens" in result.stdout
    written = (counted / "out/word.arpa").read_bytes()
    assert contents(counted) == before | {str(counted / "out/word.arpa"): written}
    # "the sea" goes on with "came" in 10 of 15 places; the discounts take some of that.
    read = read_arpa(counted / "out/word.arpa")
    assert read.probs(read.encode(["the", "sea", "came"]))[-1] > 0.4


def test_the_bytes_are_those_of_the_counts(run_stage: RunStage, counted: Path) -> None:
    corpus = counted / "data" / "corpus" / "word"
    vocab = Vocab.load(corpus / "vocab.json", "word")
    write_arpa(counted / "expected.arpa", KneserNey(count_ngrams(load_split(corpus, "train"), 8, 3), 3), vocab.tokens)
    assert run_stage("ngrams", "--kind", "word", "--arpa", "word.arpa").returncode == 0
    assert (counted / "word.arpa").read_bytes() == (counted / "expected.arpa").read_bytes()


def test_the_highest_order_alone_is_that_of_all_models(counted: Path) -> None:
    folder = counted / "data" / "models" / "ngrams" / "word"
    ids = load_split(counted / "data" / "corpus" / "word", "test")
    expected = load_models(folder, 8)["kneser-ney-3"].probs(ids)
    assert load_kneser_ney(folder, 8).probs(ids).tolist() == expected.tolist()


def test_without_counts_one_line_says_what_is_missing(run_stage: RunStage, counted: Path) -> None:
    (counted / "data/models/ngrams/word/models.json").unlink()
    result = run_stage("ngrams", "--kind", "word", "--arpa", "word.arpa")
    assert result.returncode == 3
    assert result.stderr.count("\n") == 1
    assert "models.json: no such file: run the stage that writes it" in result.stderr
    assert not (counted / "word.arpa").exists()
