"""Subwords: text comes back exactly, in any script; equal settings give equal tokenizers."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from encoded_corpora import ALGORITHMS, build, trained, write_splits
from seqlm.core.errors import DataError
from seqlm.vocab import corpus as corpus_module
from seqlm.vocab import kinds
from seqlm.vocab.corpus import SPLITS, load_corpus, load_split
from seqlm.vocab.kinds import BYTE_TOKENS, SubwordTokenizer, sample, token_kind
from seqlm.vocab.vocabulary import Vocab
from smoke import ROOT
from stages_by_hand import run_python, succeeded

SUBWORD = token_kind("subword")
TRAIN = "the sea, the tide; the sailor's sea\n\n  der Fluß und das Meer — 日本の海\n" * 20
separators = st.sampled_from(["", " ", "\n"])


TOKENIZERS = {algorithm: trained(TRAIN, "\n", algorithm, 400) for algorithm in ALGORITHMS}
"""Tokenizers that are trained on a text of several scripts."""


algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)
# Text of any script, and text that is similar to train.
texts = st.text() | st.text(alphabet="thesa,' \n日\0\U0010ff41é\u0301<unk>0xC3", max_size=60)


@algorithms
@given(text=texts, separator=separators)
@example(text="<0xC3><0xA9> <unk>", separator="")  # they are text, not tokens of bytes
@example(text="".join(map(chr, range(0x300))), separator="\n")
def test_text_of_any_script_comes_back(algorithm: str, text: str, separator: str) -> None:
    vocab = Vocab("subword", ["<unk>", *TOKENIZERS[algorithm].tokens], [], separator, {}, TOKENIZERS[algorithm])
    tokens = vocab.tokenize(text)
    ids = vocab.encode(tokens)
    assert (ids > 0).all()
    joined = text.replace("\n", separator)
    assert vocab.join(vocab.decode(ids.tolist())) == joined
    # The lengths add up to the characters of the text, including those that are written in bytes.
    assert vocab.lengths(tokens).sum() == len(joined)


@given(st.lists(st.text(alphabet="ab 'é,漢\n", max_size=40), min_size=3, max_size=3), separators, st.integers(1, 7))
@settings(max_examples=40)
def test_pieces_cut_no_token(contents: list[str], separator: str, piece: int) -> None:
    contents = [f"ab{content}\n" for content in contents]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_PIECE", piece)
        folder = Path(name)
        vocab = build(write_splits(folder, *contents), folder, "subword", separator)
        corpus = load_corpus(folder, "subword")
        assert corpus.vocab == vocab
        assert corpus.unknown_tokens == []
        for split, content in zip(SPLITS, contents, strict=True):
            tokens = vocab.tokenize(content.removesuffix("\n"))
            assert corpus.splits[split].texts() == tokens
            assert vocab.join(tokens) == content.removesuffix("\n").replace("\n", separator)
            assert vocab.splits[split].num_chars == corpus.splits[split].lengths().sum()


def test_a_small_vocabulary_by_hand(tmp_path: Path) -> None:
    # The pretokens of "ab ab ab" are "ab" once and " ab" twice: the pair a, b occurs three times and is merged, then
    # the space and "ab". Nothing is left to merge: there are 256 bytes, three characters and two merged tokens.
    vocab = build(write_splits(tmp_path, "ab ab ab\n"), tmp_path, "subword", "")
    assert len(vocab) == 1 + 256 + 3 + 2
    # By frequency: " ab" twice, "ab" once, then the tokens that never occur.
    assert vocab.tokens[:3] == ["<unk>", " ab", "ab"]
    assert vocab.counts == [0, 2, 1] + [0] * 259
    assert load_split(tmp_path, "train").tolist() == [2, 1, 1]
    # ï has two bytes in UTF-8, C3 AF; the first counts as the character.
    tokens = vocab.tokenize("abï")
    assert tokens == ["ab", BYTE_TOKENS[0xC3], BYTE_TOKENS[0xAF]]
    assert vocab.lengths(tokens).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("text", "separator", "expected"),
    [
        ("the sea, he said", "", ["the", " sea", ",", " he", " said"]),
        ("sailor's 'tis boys' l’eau", "", ["sailor's", " '", "tis", " boys", "'", " l’eau"]),
        ("a  b\n c", "\n", ["a", " ", " b", "\n", " c"]),
        ("a\nb", " ", ["a", " b"]),
        ("a\nb", "", ["a", "b"]),
        ("x" * 250, "", ["x" * 100, "x" * 100, "x" * 50]),
        ("日本、海", "", ["日本", "、", "海"]),
    ],
)
def test_pretokens_are_words_with_their_space_and_punctuation(text: str, separator: str, expected: list[str]) -> None:
    assert SUBWORD.pretokenize(text, separator) == expected


@algorithms
def test_the_vocabulary_has_the_size_that_is_asked_for(algorithm: str) -> None:
    text = " ".join(map("".join, np.random.default_rng(0).choice(list("abcdefghij"), (3000, 6))))
    assert len(text) == 20_999
    # An automatic one follows from the alphabet and the text: 256 bytes and <unk>, twice the space and ten letters, and
    # half the square root of 20,999 bytes: 144.9 / 2.
    for size, expected in ((300, 300), (500, 500), ("auto", 257 + 2 * 11 + 72)):
        tokens = trained(text, "", algorithm, size).tokens
        assert len(tokens) + 1 == expected
        assert all(token in text for token in set(tokens) - set(BYTE_TOKENS))


@algorithms
def test_a_vocabulary_has_all_characters_of_train_whatever_its_size(algorithm: str) -> None:
    text = "".join(chr(0x4E00 + number) * 3 for number in range(1000))
    assert set(text) <= set(trained(text, "", algorithm, 300).tokens)


def test_pairs_that_occur_once_are_not_merged() -> None:
    # "ab" occurs twice, "cd" once.
    tokens = set(trained("ab, ab; cd", vocab_size=400).tokens) - set(BYTE_TOKENS)
    assert {token for token in tokens if len(token) > 1} == {"ab"}


PROGRAM = """
import sys
from pathlib import Path
from encoded_corpora import ALGORITHMS, trained
for algorithm in ALGORITHMS:
    print(trained(Path(sys.argv[1]).read_text(), "", algorithm, 900).description)
"""


def test_two_runs_give_equal_bytes_whatever_the_threads() -> None:
    # Natural text: among random words, several tokens would be equally good.
    printed = [
        succeeded(
            run_python(PROGRAM, ROOT / "data/sample.txt", RAYON_NUM_THREADS=threads, TOKENIZERS_PARALLELISM="true")
        )
        for threads in ("1", "2")
    ]
    assert printed[0] == printed[1]
    # The tokens of all bytes are there, by the library's names.
    assert all(printed[0].count(f'"{token}"') == len(ALGORITHMS) for token in BYTE_TOKENS)


def test_a_long_text_is_sampled_in_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_SAMPLE", 64 * 50)
    lines = [f"wörter number{number:05d} here\n" for number in range(5000)]
    passages = list(sample("".join(lines)))
    assert len(passages) == 64
    assert sum(map(len, passages)) <= 64 * 50
    # Whole words, from all parts of the text.
    assert {word for part in passages for word in part.split()} <= {word for line in lines for word in line.split()}
    assert {int(word[6:]) // 500 for part in passages for word in part.split() if word[0] == "n"} == set(range(10))
    monkeypatch.setattr(kinds, "_SAMPLE", sum(map(len, lines)))
    assert list(sample("".join(lines))) == ["".join(lines)]


@algorithms
def test_the_library_reads_and_decodes_the_tokenizer(algorithm: str) -> None:
    from tokenizers import Tokenizer

    read = Tokenizer.from_str(TOKENIZERS[algorithm].description)
    tokens = [token.value for token in read.model.tokenize("海ï\0tide")]
    assert tokens == TOKENIZERS[algorithm].tokenize(["海ï\0tide"])
    assert read.decoder.decode(tokens) == "海ï\0tide"


def test_a_broken_tokenizer_is_refused() -> None:
    for description in ("", "{}", "null", '{"model": '):
        with pytest.raises(DataError, match="a corrupt subword tokenizer"):
            _ = SubwordTokenizer(description).tokens
