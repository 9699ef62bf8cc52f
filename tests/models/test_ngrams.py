"""N-gram models: in ARPA files, scored as KenLM scores them, and those that count the text that they have predicted."""

import copy
import math
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import seqlm
from reference import clean_line
from seqlm.core.errors import ParamsError
from seqlm.models.info import ngram_info
from seqlm.models.ngrams import EvolvingCounts, NGram
from seqlm.ngrams.arpa import write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.vocabulary import SplitInfo, Vocab
from smoke import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:.*(the 1-grams sum to|single characters|lists no)")

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
    for eos in (True, False):
        total = -math.log(10) * sum(theirs.score(line, eos=eos) for line in LINES)
        assert seqlm.open_arpa(LMPLZ, eos=eos).score(TEXT).nll == pytest.approx(total, abs=1e-2)


def test_sentence_marks_by_hand(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    model = seqlm.open_arpa(tmp_path / "x.arpa")
    found = model.surprisals("a b\n\nb")
    assert found["text"].tolist() == ["a", "b", "</s>", "</s>", "b", "</s>"]
    assert (found["bits"] * math.log10(2)).tolist() == pytest.approx([0.4, 0.3, 0.5, 0.5, 0.3, 0.5])
    assert model.surprisals("a b", context="b\na\nb")["text"].tolist() == ["a", "b", "</s>"]
    # The ends of sentences belong to no word: a word has the same bits wherever it stands.
    for space in ("before", "after"):
        bits = model.surprisals("a b\n\nb", "word", space)["bits"] * math.log10(2)
        assert bits.tolist() == pytest.approx([0.4, 0.3, 0.3])
    assert model.surprisals(words=["a", "b"], context="b")["bits"].sum() * math.log10(2) == pytest.approx(0.7)
    assert model.score("a b\n\nb").nll == pytest.approx(2.5 * math.log(10))
    # Each line ends with a character: "a b\n", "\n", "b\n" are seven. The only separator, a space and the word after
    # it, is charged by its frequency in the text: with add-one smoothing, each of two alternatives to it has one third.
    assert model.score("a b\n\nb").bits_per_character == pytest.approx((2.5 / math.log10(2) - 2 * math.log2(2 / 3)) / 7)

    # Without the ends, two lines with a separator in between are three characters and none.
    without = seqlm.open_arpa(tmp_path / "x.arpa", eos=False)
    assert without.surprisals("a b\n\nb")["text"].tolist() == ["a", "b", "b"]
    score = without.score("a b\n\nb")
    assert score.tokens == 3
    assert score.nll == pytest.approx(1.0 * math.log(10))
    assert score.bits_per_character == pytest.approx((1.0 / math.log10(2) - 2 * math.log2(2 / 3)) / 4)
    assert copy.copy(without).score("a b\n\nb") == score


def test_a_word_that_is_written_like_a_mark_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    with_marks = seqlm.open_arpa(tmp_path / "x.arpa")
    # The file has no such words, so they are unknown. </s> as a mark has 0.5, <unk> has 1.
    rows = with_marks.surprisals("<s> a </s>")
    assert rows["text"].tolist() == ["<s>", "a", "</s>", "</s>"]
    assert rows["unknown"].tolist() == [True, False, True, False]
    assert with_marks.score("<s> a </s>").nll == pytest.approx((1 + 0.4 + 1 + 0.5) * math.log(10))
    # <unk> in a text is an unknown word, too.
    for model in (with_marks, kneser_ney()):
        assert model.surprisals("a <unk> a zebra", by="word")["unknown"].tolist() == [False, True, False, True]
    tokens = ["<unk>", "aa", "</s>"]
    counted = KneserNey(count_ngrams(np.array([1, 2, 1, 1, 2] * 9), len(tokens), 2), 2)
    write_arpa(tmp_path / "y.arpa", counted, tokens)
    read = seqlm.open_arpa(tmp_path / "y.arpa")
    assert read.surprisals("aa")["text"].tolist() == ["aa"]
    assert read.score_text("aa </s> aa").nll[1:] == pytest.approx(-np.log(counted.probs(np.array([1, 2, 1]))), abs=1e-6)


CYCLE = """\\data\\
ngram 1=5
ngram 2=4

\\1-grams:
-1\t<unk>
-99\t<s>\t0
-0.7\t</s>
-0.6\ta\t0
-0.6\tb\t0

\\2-grams:
0\t<s> a
0\ta b
0\tb </s>
0\t</s> </s>

\\end\\
"""
"""Each sentence is "a b". That </s> follows itself is only likely if the next sentence does not begin with <s>."""


@pytest.mark.parametrize("by", ["word", "char"])
def test_a_sentence_that_ends_is_a_line_that_ends(by: Literal["word", "char"], tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(CYCLE)
    model = seqlm.open_arpa(tmp_path / "x.arpa", by)
    blank = "" if by == "char" else " "
    for prefix, continuation in (("a", " b\na b"), ("a b\n", "a b\na"), ("", "a b\na")):
        assert model.generate(prefix.replace(" ", blank), 4, temperature=0) == continuation.replace(" ", blank)
    assert model.score(f"a{blank}b\na{blank}b").nll == pytest.approx(0)
    # A reader gives each token what scoring gives it.
    encoded = model.encode("", f"b{blank}a\nb")
    reader, nll = model.reader(), []
    for token_id, is_scored in zip(encoded.input_ids.tolist(), encoded.is_scored, strict=True):
        nll += [-np.log(reader.next_probs()[token_id])] if is_scored else []
        reader.read(token_id)
    assert nll == pytest.approx(model.score_text(f"b{blank}a\nb").nll)


def test_characters_with_sentence_marks_are_read_as_the_user_says(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    with pytest.warns(UserWarning, match=r"x\.arpa: all its tokens are single characters: .* over words"):
        seqlm.open_arpa(tmp_path / "x.arpa")
    model = seqlm.open_arpa(tmp_path / "x.arpa", by="char")
    assert not any("characters" in warning for warning in model.warnings)
    # Lines are a, b, </s> and b, </s>: five characters with their line ends, and no cost of separators.
    score = model.score("ab\nb")
    assert (score.tokens, score.unknown_share) == (5, 0)
    assert score.nll == pytest.approx(2.0 * math.log(10))
    assert score.bits_per_character == pytest.approx(2.0 / math.log10(2) / 5)
    assert model.surprisals("ab\nb", by="word")["bits"].tolist() == pytest.approx(np.array([0.7, 0.3]) / math.log10(2))
    with pytest.raises(ParamsError, match="by"):
        seqlm.open_arpa(tmp_path / "x.arpa", by="line")  # type: ignore[arg-type]


def test_a_file_of_characters_generates(tmp_path: Path) -> None:
    tokens = ["<unk>", "a", "b", " "]
    write_arpa(tmp_path / "x.arpa", KneserNey(count_ngrams(np.array([1, 2, 3] * 20), len(tokens), 3), 3), tokens)
    read = seqlm.open_arpa(tmp_path / "x.arpa")
    assert read.info.token == "char"
    assert read.generate("ab", 6, temperature=0) == " ab ab"
    assert read.warnings == []
    # Words of one letter each look the same, so the user is told.
    seqlm.fit_ngram("A C G T A", 2).to_arpa(tmp_path / "y.arpa")
    with pytest.warns(UserWarning, match="it is read as a model over characters"):
        seqlm.open_arpa(tmp_path / "y.arpa")


RNG = np.random.default_rng(0)
TRAIN, READ = RNG.zipf(1.5, 400) % 6 + 1, RNG.zipf(1.5, 60) % 6 + 1


def counted(read: np.ndarray) -> KneserNey:
    """Return the model of train and of what was read."""
    return KneserNey(count_ngrams(np.r_[TRAIN, read], 7, 3), 3)


def recounted_nll(ids: np.ndarray, num_updates: int) -> np.ndarray:
    vocab = Vocab("char", list("?abcdef"), [0] * 7, "", {"train": SplitInfo(400, 400, 0, "")})
    info = ngram_info("kneser-ney", 3, vocab).as_dynamic()
    return NGram(info, vocab, EvolvingCounts(counted, num_updates)).token_nll(ids)


def test_each_token_is_predicted_from_train_and_the_text_before_it() -> None:
    expected = [token_nll(counted(READ[:end]), READ[max(end - 2, 0) : end + 1])[-1] for end in range(1, 60)]
    assert recounted_nll(READ, num_updates=1000) == pytest.approx(expected)


def test_a_part_is_predicted_with_the_counts_of_the_parts_before_it() -> None:
    # 59 tokens are scored, in 3 parts of 20, 20 and 19.
    found = recounted_nll(READ, num_updates=3)
    expected = [token_nll(counted(READ[: 20 * part + 1]), READ)[20 * part :][:20] for part in range(3)]
    assert found == pytest.approx(np.concatenate(expected))
    changed = READ.copy()
    changed[-1] = changed[-1] % 6 + 1
    assert recounted_nll(changed, num_updates=3)[:-1].tolist() == found[:-1].tolist()
    # A text without a second token has no surprisals.
    assert len(recounted_nll(READ[:1], num_updates=3)) == len(recounted_nll(READ[:0], num_updates=3)) == 0
