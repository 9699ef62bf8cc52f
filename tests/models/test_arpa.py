"""Models in ARPA files: those of KenLM score as KenLM scores them, and KenLM scores ours as we do."""

import math
from pathlib import Path

import numpy as np
import pytest

import seqlm
from reference import clean_line
from seqlm.core.errors import DataError
from seqlm.models.info import describe_ngram
from seqlm.models.language_model import LanguageModel
from seqlm.models.ngrams import NGram
from seqlm.models.recounting import Recounting
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


def kneser_ney() -> tuple[KneserNey, Vocab]:
    words = TEXT.split()
    tokens = ["<unk>", *sorted(set(words[:300]))]
    vocab = Vocab("word", tokens, [1] * len(tokens), "", {"train": SplitInfo(300, 1500, 0, "")})
    return KneserNey(count_ngrams(vocab.encode(words[:300]), len(vocab), 3), 3), vocab


def test_kenlm_gives_our_words_the_same_scores(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    model, vocab = kneser_ney()
    write_arpa(tmp_path / "model.arpa", model, vocab.tokens)
    theirs = kenlm.Model(str(tmp_path / "model.arpa"))
    scores = list(theirs.full_scores(" ".join(TEXT.split()), bos=False, eos=False))[1:]
    ours: LanguageModel
    for ours in (
        NGram(describe_ngram("kneser-ney", 3, vocab), vocab, Recounting.fixed(model)),
        seqlm.open_arpa(tmp_path / "model.arpa"),
    ):
        found, decimals = ours.surprisals(TEXT, by="word")[1:], np.array([decimal for decimal, _, _ in scores])
        assert found["unknown"].tolist() == [is_unknown for _, _, is_unknown in scores]
        assert found["unknown"].any()
        assert ours.score_tokens(TEXT).nll == pytest.approx(-decimals * math.log(10), abs=2e-4)
        known = ~found["unknown"].to_numpy()
        assert found["bits"].to_numpy()[known] == pytest.approx(-decimals[known] / math.log10(2), abs=1e-3)


def test_a_model_of_kenlm_scores_sentences_as_kenlm_does() -> None:
    kenlm = pytest.importorskip("kenlm")
    theirs, ours = kenlm.Model(str(LMPLZ)), seqlm.open_arpa(LMPLZ)
    scores = [score for line in LINES for score in theirs.full_scores(line, bos=True, eos=True)]
    found = ours.surprisals(TEXT)[1:]
    assert found["text"].tolist() == [word for line in LINES for word in [*line.split(), "</s>"]]
    assert found["unknown"].tolist() == [is_unknown for _, _, is_unknown in scores]
    expected = [-decimal * math.log(10) for decimal, _, _ in scores]
    assert ours.score_tokens(TEXT).nll == pytest.approx(expected, abs=2e-4)
    assert ours.score(TEXT).nll == pytest.approx(-math.log(10) * sum(theirs.score(line) for line in LINES), abs=1e-2)


def test_units_with_sentence_marks_by_hand(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    model = seqlm.open_arpa(tmp_path / "x.arpa")
    decimals = model.surprisals("a b\n\nb", by="token").assign(bits=lambda table: table["bits"] * math.log10(2))
    assert decimals["text"].tolist() == ["<s>", "a", "b", "</s>", "</s>", "b", "</s>"]
    assert decimals["bits"].tolist()[1:] == pytest.approx([0.4, 0.3, 0.5, 0.5, 0.3, 0.5])
    # The end of a line belongs to the next word, or to the one before it; that of the last line to the last word.
    for by, space, expected in (
        ("word", "after", [0.4, 0.3 + 0.5 + 0.5, 0.3 + 0.5]),
        ("word", "before", [0.4, 0.3, 0.5 + 0.5 + 0.3 + 0.5]),
        ("line", "after", [1.2, 0.5, 0.8]),
    ):
        bits = model.surprisals("a b\n\nb", by=by, space=space)["bits"]
        assert (bits * math.log10(2)).tolist() == pytest.approx(expected)
    # A word that is spelt like a mark is a word.
    spelt = model.surprisals("a <s> b", by="token")
    assert spelt[["start", "end"]].to_numpy().tolist() == [[0, 0], [0, 1], [2, 5], [6, 7], [7, 7]]
    # Each line ends with a character: "a b\n", "\n", "b\n" are seven.
    assert model.score("a b\n\nb").bits_per_character == pytest.approx(2.5 / math.log10(2) / 7)


def test_a_file_of_characters_generates(tmp_path: Path) -> None:
    tokens = ["<unk>", "a", "b", " "]
    model = KneserNey(count_ngrams(np.array([1, 2, 3] * 20), len(tokens), 3), 3)
    write_arpa(tmp_path / "x.arpa", model, tokens)
    read = seqlm.open_arpa(tmp_path / "x.arpa")
    assert (read.info.token, read.has_marks) == ("char", False)
    assert read.generate("ab", 6, temperature=0) == " ab ab"
    reader = read.reader(1)
    for token in read.vocab.encode(["a", "b"]):
        reader.read(np.array([token]))
    expected = model.next_distribution(np.array([1, 2]))
    places = [read.vocab.tokens.index(token) for token in tokens]
    assert reader.next_probs()[0, places] == pytest.approx(expected, abs=1e-6)


def test_unk_in_a_text_is_an_unknown_word(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS)
    with_marks = seqlm.open_arpa(tmp_path / "x.arpa")
    model, vocab = kneser_ney()
    for ours in (with_marks, NGram(describe_ngram("kneser-ney", 3, vocab), vocab, Recounting.fixed(model))):
        costs = {word: ours.encode(f"a {word}")[0].unknown_costs.max() for word in ("<unk>", "zebra")}
        assert min(costs.values()) > 0
        found = ours.encode("a <unk> a zebra")[0].unknown_costs
        assert found[found > 0].tolist() == [costs["<unk>"], costs["zebra"]]


def test_a_word_that_is_written_like_a_mark_is_a_word(tmp_path: Path) -> None:
    tokens = ["<unk>", "aa", "</s>"]
    model = KneserNey(count_ngrams(np.array([1, 2, 1, 1, 2] * 9), len(tokens), 2), 2)
    write_arpa(tmp_path / "x.arpa", model, tokens)
    read = seqlm.open_arpa(tmp_path / "x.arpa")
    assert not read.has_marks
    expected = -np.log(model.probs(np.array([1, 2, 1])))
    assert read.score_tokens("aa </s> aa").nll == pytest.approx(expected, abs=1e-6)


def test_words_that_a_file_without_unk_lacks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_text(MARKS.replace("1=5", "1=4").replace("-1\t<unk>\n", ""))
    with pytest.warns(UserWarning, match=r"x\.arpa: the probabilities of the 1-grams sum to 1\.22, not to 1"):
        model = seqlm.open_arpa(tmp_path / "x.arpa")
    with pytest.raises(DataError, match=r"x\.arpa: lists no <unk>"):
        model.score("a zebra")
