"""Models in ARPA files: those of KenLM score as KenLM scores them, and KenLM scores ours as we do."""

import math
from pathlib import Path

import numpy as np
import pytest

import seqlm
from reference import clean_line
from seqlm.core.errors import DataError
from seqlm.models.ngrams import NGram
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from smoke import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:.*the 1-grams sum to")

# lmplz -o 3 --discount_fallback wrote it from the first 30 cleaned lines of data/sample.txt.
LMPLZ = ROOT / "tests" / "ngrams" / "lmplz.arpa"
LINES = [clean_line(line) for line in (ROOT / "data" / "sample.txt").read_text(encoding="utf-8").splitlines()[:100]]
TEXT = "\n".join(LINES)
# No context, only an end of the sentence that is likelier after "b".
MARKS = "\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-0.5\t</s>\n-0.4\ta\n-0.3\tb\n\n\\end\\\n"


def kneser_ney() -> NGram:
    words = TEXT.split()[:300]
    tokens = ["<unk>", *sorted(set(words))]
    vocab = Vocab("word", tokens, [1] * len(tokens), "", {"train": SplitInfo(300, 1500, 0, "")})
    return NGram.of(KneserNey(count_ngrams(vocab.encode(words), len(vocab), 3), 3), vocab)


def test_kenlm_gives_our_words_the_same_scores(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    model = kneser_ney()
    model.to_arpa(tmp_path / "model.arpa")
    scores = list(kenlm.Model(str(tmp_path / "model.arpa")).full_scores(" ".join(TEXT.split()), bos=False, eos=False))
    decimals = np.array([decimal for decimal, _, _ in scores])
    for ours in (model, seqlm.open_arpa(tmp_path / "model.arpa")):
        found = ours.surprisals(TEXT, by="word")
        assert found["unknown"].tolist() == [is_unknown for _, _, is_unknown in scores]
        assert found["unknown"].any()
        assert ours.score_text(TEXT).nll == pytest.approx(-decimals * math.log(10), abs=2e-4)
        known = ~found["unknown"].to_numpy()
        assert found["bits"].to_numpy()[known] == pytest.approx(-decimals[known] / math.log10(2), abs=1e-3)


def test_a_model_of_kenlm_scores_sentences_as_kenlm_does() -> None:
    kenlm = pytest.importorskip("kenlm")
    theirs, ours = kenlm.Model(str(LMPLZ)), seqlm.open_arpa(LMPLZ)
    scores = [score for line in LINES for score in theirs.full_scores(line, bos=True, eos=True)]
    found = ours.surprisals(TEXT)
    assert found["text"].tolist() == [word for line in LINES for word in [*line.split(), "</s>"]]
    assert found["unknown"].tolist() == [is_unknown for _, _, is_unknown in scores]
    expected = [-decimal * math.log(10) for decimal, _, _ in scores]
    assert ours.score_text(TEXT).nll == pytest.approx(expected, abs=2e-4)
    assert ours.score(TEXT).nll == pytest.approx(-math.log(10) * sum(theirs.score(line) for line in LINES), abs=1e-2)


def test_sentence_marks_by_hand(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    model = seqlm.open_arpa(tmp_path / "x.arpa")
    found = model.surprisals("a b\n\nb")
    assert found["text"].tolist() == ["a", "b", "</s>", "</s>", "b", "</s>"]
    assert (found["bits"] * math.log10(2)).tolist() == pytest.approx([0.4, 0.3, 0.5, 0.5, 0.3, 0.5])
    assert model.surprisals("a b", context="b\na\nb")["text"].tolist() == ["a", "b", "</s>"]
    # The end of a line belongs to the next word, or to the one before it; that of the last line to the last word.
    before = model.surprisals("a b\n\nb", "word", "before")["bits"] * math.log10(2)
    after = model.surprisals("a b\n\nb", "word", "after")["bits"] * math.log10(2)
    assert before.tolist() == pytest.approx([0.4, 0.3, 0.5 + 0.5 + 0.3 + 0.5])
    assert after.tolist() == pytest.approx([0.4, 0.3 + 0.5 + 0.5, 0.3 + 0.5])
    assert model.score("a b\n\nb").nll == pytest.approx(2.5 * math.log(10))
    # Each line ends with a character: "a b\n", "\n", "b\n" are seven. The only separator, a space and the word after
    # it, is charged by its frequency in the text: with add-one smoothing, each of two alternatives to it has one third.
    assert model.score("a b\n\nb").bits_per_character == pytest.approx((2.5 / math.log10(2) - 2 * math.log2(2 / 3)) / 7)


def test_a_word_that_is_written_like_a_mark_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    with_marks = seqlm.open_arpa(tmp_path / "x.arpa")
    assert with_marks.surprisals("a <s> b", by="word")["text"].tolist() == ["a", "<s>", "b"]
    # <unk> in a text is an unknown word, too.
    for model in (with_marks, kneser_ney()):
        assert model.surprisals("a <unk> a zebra", by="word")["unknown"].tolist() == [False, True, False, True]
    tokens = ["<unk>", "aa", "</s>"]
    counted = KneserNey(count_ngrams(np.array([1, 2, 1, 1, 2] * 9), len(tokens), 2), 2)
    write_arpa(tmp_path / "y.arpa", counted, tokens)
    read = seqlm.open_arpa(tmp_path / "y.arpa")
    assert not read.has_marks
    assert read.score_text("aa </s> aa").nll[1:] == pytest.approx(-np.log(counted.probs(np.array([1, 2, 1]))), abs=1e-6)


def test_a_file_of_characters_generates(tmp_path: Path) -> None:
    tokens = ["<unk>", "a", "b", " "]
    write_arpa(tmp_path / "x.arpa", KneserNey(count_ngrams(np.array([1, 2, 3] * 20), len(tokens), 3), 3), tokens)
    read = seqlm.open_arpa(tmp_path / "x.arpa")
    assert (read.info.token, read.has_marks) == ("char", False)
    assert read.generate("ab", 6, temperature=0) == " ab ab"
    assert read.warnings == []
    # Words of one letter each look the same, so the user is told.
    seqlm.fit_ngram("A C G T A", 2).to_arpa(tmp_path / "y.arpa")
    with pytest.warns(UserWarning, match="so it is read as a model over characters"):
        seqlm.open_arpa(tmp_path / "y.arpa")


def test_words_that_a_file_without_unk_lacks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS.replace("1=5", "1=4").replace("-1\t<unk>\n", ""))
    with pytest.warns(UserWarning, match=r"x\.arpa: the probabilities of the 1-grams sum to 1\.22, not to 1"):
        model = seqlm.open_arpa(tmp_path / "x.arpa")
    with pytest.raises(DataError, match=r"x\.arpa: lists no <unk>"):
        model.score("a zebra")
