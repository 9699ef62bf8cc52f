"""The ARPA format: there and back, and with KenLM."""

import bz2
import gzip
import lzma
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm.core.errors import DataError
from seqlm.ngrams.arpa import ArpaModel, escape, read_arpa, unescape, write_arpa
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.kneser_ney import KneserNey

TOKENS = ["<unk>", " ", "\n", "a", "b\\", "ß\u3000\0"]
TEXT = np.random.default_rng(0).zipf(1.4, 4000) % 5 + 1


def model(order: int = 3) -> KneserNey:
    return KneserNey(count_ngrams(TEXT, len(TOKENS), order), order)


def ids(arpa: ArpaModel, tokens: Iterable[str]) -> np.ndarray:
    return np.array([arpa.tokens.index(token) for token in tokens])


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_what_is_written_is_read_and_scores_the_same(name: str, order: int, tmp_path: Path) -> None:
    write_arpa(tmp_path / name, model(order), TOKENS)
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    found = read_arpa(tmp_path / name)
    test = np.random.default_rng(1).integers(0, len(TOKENS), 500)
    again = found.probs(ids(found, [TOKENS[token] for token in test]))
    assert np.log10(again) == pytest.approx(np.log10(model(order).probs(test)), abs=1e-6)


def test_tokens_of_any_length_are_written(tmp_path: Path) -> None:
    tokens = ["<unk>", "x" * 500, "y" * 64, "a", "ä" * 40, "<s>"]
    write_arpa(tmp_path / "model.arpa", model(), tokens)
    # The marks are no text; a token that is spelt like one is.
    assert read_arpa(tmp_path / "model.arpa").tokens == ["<unk>", "", "", *tokens[1:]]
    # Numbers have eight decimals.
    lines = (tmp_path / "model.arpa").read_text().splitlines()
    start = lines.index("\\1-grams:") + 3  # after <s> and </s>
    written = [line.split("\t")[:2] for line in lines[start : start + len(tokens)]]
    probs = zip(np.log10(model().unigram), tokens, strict=True)
    assert written == [[f"{value:.8f}", escape(token)] for value, token in probs]


# In the format of KenLM's lmplz; the numbers are made up, all different.
LMPLZ = """\\data\\
ngram 1=4
ngram 2=3

\\1-grams:
-0.9542425\t<unk>\t0
-0.6532126\ta\t-0.30103
-0.6532126\tb\t-0.1760913
-0.8293038\tc\t-0.30103

\\2-grams:
-0.34\tb a
-0.35\ta b
-0.36\tb c

\\end\\
"""

LMPLZ_WITH_MARKS = LMPLZ.replace("1=4", "1=6").replace("\n\n\\2-", "\n-99\t<s>\t0\n-99\t</s>\n\n\\2-")
"""KenLM insists on marks."""


def read(folder: Path, text: str) -> ArpaModel:
    """Return what a file x.arpa with this text holds."""
    (folder / "x.arpa").write_bytes(text.encode())
    return read_arpa(folder / "x.arpa")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("\\end\\\n", "", "truncated"),
        ("ngram 2=3", "ngram 2=4", "3 2-grams where the header says 4"),
        ("\\data\\", "data", "not an ARPA file"),
        ("ngram 2=3", "ngram 3=3", "orders in turn"),
        ("-0.36\tb c", "x\tb c", "line 14: expected a number"),
        ("-0.36\tb c", "400\tb c", "expected the logarithms"),
        ("-0.36\tb c", "-0.3.6\tb c", "expected a number"),
        ("ngram 2=3", "ngram 2=999999999999999999", "3 2-grams where the header says 9"),
        ("-0.36\tb c", "-0.36\tb c\t-inf", "expected the logarithms"),
        ("\tc\t", "\ta\t", "'a' is listed twice"),
        ("-0.36\tb c", "-0.36\tb c\t999", "expected the logarithms"),
        ("-0.36\tb c", "-0.36\tb d", "line 14: a word of this n-gram is not among the 1-grams"),
        ("-0.36\tb c", "-0.36\ta b", "'a b' is listed twice"),
    ],
)
def test_a_broken_file_is_named_with_its_line(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    assert old in LMPLZ
    with pytest.raises(DataError, match=complaint):
        read(tmp_path, LMPLZ.replace(old, new))


def test_a_probability_above_1_is_refused(tmp_path: Path) -> None:
    found = read(tmp_path, LMPLZ.replace("b\t-0.1760913", "b\t2"))
    # 10 ** (2 - 0.6532) = 22.2
    with pytest.raises(DataError, match=r"x\.arpa: its backoff weights give .* probability 22\.2, more than 1"):
        found.probs(ids(found, "abb"))
    with pytest.raises(DataError, match="more than 1"):
        found.next_distribution(ids(found, "abb"))


def test_1_grams_that_do_not_sum_to_1_are_warned_of(tmp_path: Path) -> None:
    # 1/9 + 2/9 + 2/9 + 0.1482
    assert "the 1-grams sum to 0.704, not to 1" in read(tmp_path, LMPLZ).warnings[0]
    write_arpa(tmp_path / "y.arpa", model(), TOKENS)
    assert read_arpa(tmp_path / "y.arpa").warnings == []
    # That of KenLM lists <s> with probability 1.
    assert read_arpa(Path(__file__).with_name("lmplz.arpa")).warnings == []


@pytest.mark.parametrize(
    "pack", [lambda content: b"\xef\xbb\xbf" + content, gzip.compress, bz2.compress, lzma.compress]
)
def test_a_byte_order_mark_and_any_name_of_a_packed_file_are_accepted(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    # A form feed is a word, as in KenLM.
    content = pack(LMPLZ.replace("\tc", "\t\f").replace(" c", " \f").encode())
    (tmp_path / "x.arpa").write_bytes(content)
    assert read_arpa(tmp_path / "x.arpa").tokens == ["<unk>", "a", "b", "\f"]
    if not content.startswith(b"\xef"):
        (tmp_path / "x.arpa").write_bytes(content[:-9])
        with pytest.raises(DataError, match="not a complete packed file"):
            read_arpa(tmp_path / "x.arpa")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("ngram 1=6", "ngram  1=   6"),
        ("\\data\\", "# made by hand\n\niARPA\n\\data\\"),
        ("ngram 2=3", "ngram 2=3\nngram 3=0"),
        ("-0.36", "-36.0E-2"),
        ("-0.36", "-3.6e-01"),
        ("-0.36", "-0.036e+01"),
        ("\n", "\r\n"),
        ("\n\n", "\n\n\n \t\n"),
    ],
)  # fmt: skip
def test_all_that_kenlm_reads_is_read_alike(old: str, new: str, tmp_path: Path) -> None:
    content = LMPLZ_WITH_MARKS.replace(old, new)
    if "3=0" in new:
        content = content.replace("\\end", "\\3-grams:\n\n\\end")
    found, text = read(tmp_path, content), ["a", "b", "c", "a", "b", "b", "<unk>"]
    logs = np.log10(found.probs(ids(found, text)))
    # a b and b c are listed; c a backs off: weight of c plus p of a; b b and b <unk> likewise.
    backed_off = [-0.1760913 - 0.6532126, -0.1760913 - 0.9542425]
    assert logs == pytest.approx([-0.35, -0.36, -0.30103 - 0.6532126, -0.35, *backed_off])
    if "iARPA" not in new:  # it insists on the # of comments
        theirs = pytest.importorskip("kenlm").Model(str(tmp_path / "x.arpa"))
        scores = [score for score, _, _ in theirs.full_scores(" ".join(text), bos=False, eos=False)]
        assert logs == pytest.approx(scores[1:], abs=1e-6)


def test_the_logarithm_of_0_and_exponents_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, LMPLZ.replace("-0.8293038\tc", "-inf\tc").replace("-0.36\tb c", "-1.2e-05\tb c"))
    assert found.unigram[ids(found, "c")] == 0
    assert np.log10(found.probs(ids(found, "bc"))) == pytest.approx([-1.2e-05], rel=1e-9)
    assert found.probs(ids(found, "ac")) == [0]  # listed nowhere: it backs off to the unigram


def test_a_file_without_unk_has_unknown_words_as_likely_as_in_kenlm(tmp_path: Path) -> None:
    found = read(tmp_path, LMPLZ_WITH_MARKS.replace("1=6", "1=5").replace("-0.9542425\t<unk>\t0\n", ""))
    assert np.log10(found.unigram[0]) == pytest.approx(-100)
    assert found.warnings[0] == "x.arpa: lists no <unk>: log10 p of unknown words is -100"
    kenlm = pytest.importorskip("kenlm")
    assert kenlm.Model(str(tmp_path / "x.arpa")).score("zebra", bos=False, eos=False) == pytest.approx(-100)


@pytest.mark.parametrize("lines", [300_000_000, 20_000_000])
def test_blank_lines_take_no_time_and_little_memory(lines: int, tmp_path: Path) -> None:
    """Blank lines after the header; the larger file is packed in 300 kB, and refused."""
    head, tail = LMPLZ.split("\n\n", 1)
    with gzip.open(tmp_path / "x.arpa", "wb", 1) as file:
        file.write(f"{head}\n".encode())
        for _ in range(lines // 1_000_000):
            file.write(b"\n" * 1_000_000)
        file.write(tail.encode())
    start = time.perf_counter()
    if lines == 20_000_000:
        assert len(read_arpa(tmp_path / "x.arpa").tokens) == 4
    else:
        with (tmp_path / "x.arpa").open("ab") as file:
            file.write(os.urandom(4_000_000))  # what was read already decides, not what follows
        with pytest.raises(DataError, match="unpacks to over 100 times its size"):
            read_arpa(tmp_path / "x.arpa")
    assert time.perf_counter() - start < 5


def test_files_of_other_forms_are_refused(tmp_path: Path) -> None:
    for content in (b"mmap lm http://\xff\xfe\x00", b"text\n" * 2000, b"", b"\n" * 2000):
        (tmp_path / "x.arpa").write_bytes(content)
        with pytest.raises(DataError, match="not an ARPA file"):
            read_arpa(tmp_path / "x.arpa")
    (tmp_path / "x.arpa").write_bytes(LMPLZ.encode().replace(b"\tc\t", b"\t\xff\t"))
    with pytest.raises(DataError, match="binary, not an ARPA file"):
        read_arpa(tmp_path / "x.arpa")


@given(st.text(min_size=1, max_size=10))
def test_every_token_that_can_be_written_comes_back(token: str) -> None:
    field = escape(token)
    assert not set(field) & set(" \t\n\r\0")  # what KenLM separates fields by
    assert field not in ("<s>", "</s>")
    assert unescape(field) == token
