"""The scored text: all of a split or passages, the cost of unknown words, and the folds that calibrate intervals."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from compiled_networks import scratch_network
from encoded_corpora import encode
from made_scores import scored_text, stream_of
from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.models.ngrams import NGram
from seqlm.models.scored_text import Streams
from seqlm.models.spelling import UNIFORM_CHAR_NLL, SpellingModel
from seqlm.networks.network import stream_nll
from seqlm.ngrams.counts.count_tables import NgramCounts
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import Uniform, token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.score.heldout import WARMUP, Heldout, find_passages
from seqlm.pipeline.score.ngrams import Folds, cross_validate, fold_bits
from seqlm.vocab.corpus import SPLITS, load_split
from seqlm.vocab.kinds import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab


def write_corpus(folder: Path, separator: str = " ", num_lines: int = 6000) -> Layout:
    """Write and encode a train of ``num_lines`` lines, and a val and a test of a tenth; test has unknown words."""
    layout, rng = Layout(folder), np.random.default_rng(0)
    words = np.array(["the", "sea", "came", "in", "and", "went", "out", "again"])
    texts = []
    for size, unknown_every in ((num_lines, num_lines + 1), (num_lines // 10, num_lines + 1), (num_lines // 10, 7)):
        drawn = [list(rng.choice(words, rng.integers(1, 9))) for _ in range(size)]
        for line in drawn[::unknown_every]:
            line[0] = f"storm{rng.integers(30)}"
        texts.append("".join(" ".join(line) + "\n" for line in drawn))
    return encode(layout, KINDS, separator, *texts)


def select(layout: Layout, kind: Kind, max_chars: int = 10**6) -> Streams:
    return Heldout(layout, kind, max_chars).streams


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_split_is_scored_as_a_whole(layout: Layout, kind: Kind) -> None:
    vocab = Vocab.load(layout.vocab(kind))
    for split, stream in select(layout, kind).items():
        assert stream.is_scored[1:].all()
        assert stream.ids.tolist() == load_split(layout.corpus(kind), split).tolist()
        assert stream.share == 1
        tokens = vocab.tokenize(layout.split(split).read_text().removesuffix("\n"))
        assert stream.lengths.tolist() == vocab.lengths(tokens)[1:].tolist()
        assert (stream.spelling > 0).tolist() == (stream.ids[1:] == 0).tolist()
    assert Heldout(layout, kind).test_tokens == tokens


@pytest.mark.parametrize("separator", ["", " ", "\n"])
def test_all_kinds_of_tokens_are_scored_on_the_same_text(tmp_path: Path, separator: str) -> None:
    layout = write_corpus(tmp_path, separator)
    streams = {kind: select(layout, kind, 10_000) for kind in KINDS}
    vocabs = {kind: Vocab.load(layout.vocab(kind)) for kind in KINDS}
    for split in SPLITS:
        text, num_chars = layout.split(split).read_text().removesuffix("\n"), vocabs["char"].splits[split].num_chars
        text = "".join(text[begin:end] for begin, end in find_passages(text, 10_000, num_chars))
        joined = text.replace("\n", separator)
        char, word, subword = (streams[kind][split] for kind in ("char", "word", "subword"))
        assert 9_500 < len(joined) < 11_000
        assert char.share == word.share == subword.share
        assert char.ids.tolist() == vocabs["char"].encode(joined).tolist()
        assert word.ids.tolist() == vocabs["word"].encode(text.split()).tolist()
        # All characters are scored except those of the first token: a letter, or a word.
        assert char.num_chars == len(char.ids) - 1 == len(joined) - 1
        assert len(joined) - word.num_chars == len(text.split()[0])
        assert word.spelling[word.ids[1:] > 0].sum() == 0
        # A passage's first subword has the space before it and lacks the one at its end: of fifty passages some have
        # one character more than with characters, others one less.
        pieces = vocabs["subword"].join(vocabs["subword"].decode(subword.ids.tolist()))
        assert pieces.replace(" ", "") == joined.replace(" ", "")
        assert len(pieces) == pytest.approx(len(joined), abs=50)
        assert subword.num_chars == subword.lengths.sum()
        assert subword.spelling.sum() == 0


def test_separators_cost_models_over_words_what_their_shares_in_train_say(tmp_path: Path) -> None:
    layout = encode(Layout(tmp_path), KINDS, "", "a b a\nb a b\n", "a b\n", "a b\na\nb\n")
    # Train has four spaces and one line end, which joins lines by nothing: with add-one smoothing, 5/7 and 2/7.
    # Its words follow each space at once: 5/6 with add-one smoothing. Test has one space and two joined line ends.
    found = {kind: select(layout, kind)["test"].separator_nll for kind in ("char", "word", "subword")}
    word = -math.log(5 / 7) - 2 * math.log(2 / 7) - math.log(5 / 6)
    assert found == {"char": 0, "word": pytest.approx(word), "subword": 0}
    # A text that is scored later is charged in the same way, however short it is; its line ends are read as spaces.
    word = -3 * math.log(5 / 7) - 3 * math.log(5 / 6)
    for kind, expected in {"char": 0, "word": word, "subword": 0}.items():
        vocab = Vocab.load(layout.vocab(kind))
        model = NGram.of(Uniform(NgramCounts([(np.arange(len(vocab)),) * 2])), vocab)
        assert model.score_text("a b\na\nb").encoded.separator_nll == pytest.approx(expected)
    # Blank lines before the first word are not scored: in "\n\nthe sea", 4 characters follow the first word, and 8 the
    # first character.
    layout = encode(Layout(tmp_path), ["char", "word"], "\n", "\n\nthe sea\n")
    assert [select(layout, kind)["test"].num_chars for kind in ("char", "word")] == [8, 4]


def scored_places(layout: Layout, kind: Kind) -> np.ndarray:
    """Return the places of the scored tokens of train among the surprisals of all its tokens but the first."""
    ranges = Heldout(layout, kind, 10_000)._passages("train")[-1]
    assert len(ranges) == 50
    return np.concatenate([np.arange(begin, end) for begin, end in ranges])[1:] - 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_ngram_model_scores_a_passage_as_a_part_of_its_text(layout: Layout, kind: Kind) -> None:
    train, vocab = load_split(layout.corpus(kind), "train"), Vocab.load(layout.vocab(kind))
    model = KneserNey(count_ngrams(train, len(vocab), 3), 3)
    stream = select(layout, kind, 10_000)["train"]
    expected = token_nll(model, train)[scored_places(layout, kind)]
    assert stream.scored_nll(partial(token_nll, model)).tolist() == expected.tolist()


def test_a_network_reads_a_warm_up_before_each_passage(layout: Layout) -> None:
    network = scratch_network(len(Vocab.load(layout.vocab("char"))), 16, factor=20)
    stream, train = select(layout, "char", 10_000)["train"], load_split(layout.corpus("char"), "train")
    expected = stream_nll(network, train)[scored_places(layout, "char")]
    assert stream.scored_nll(partial(stream_nll, network)) == pytest.approx(expected, abs=1e-4)
    assert len(stream.input_ids) == len(stream.ids) + 49 * WARMUP
    # Text between close passages is read once.
    stream = select(layout, "char", round(0.9 * len(train)))["train"]
    assert len(stream.input_ids) <= len(train)
    assert 0.89 < stream.share < 0.92


def test_the_beginning_of_train(layout: Layout) -> None:
    train, heldout = load_split(layout.corpus("char"), "train"), Heldout(layout, "char", 10_000)
    beginning = heldout.head("train", 3_000)
    assert beginning.ids.tolist() == train[:3_000].tolist()
    assert beginning.num_chars == 2_999
    # No more is read than of a long split; all of train is its scored text.
    assert len(heldout.head("train", 30_000).ids) == 10_000
    assert heldout.head("train", len(train)) is heldout.stream("train")
    for kind in ("word", "subword"):
        vocab, beginning = (Vocab.load(layout.vocab(kind)), Heldout(layout, kind, 10_000).head("train", 300))
        text = vocab.join(vocab.decode(beginning.ids.tolist()))
        assert beginning.num_chars == pytest.approx(len(text), rel=0.05)
        # Each length belongs to its own token; the first token is not scored.
        assert beginning.lengths.tolist() == vocab.lengths(vocab.decode(beginning.ids[1:].tolist())).tolist()


def test_unknown_tokens_and_words_cost_their_spelling() -> None:
    text = stream_of(np.array([0, 1, 0]), np.array([1, 1]), np.array([0.0, 7.0]), 2)
    assert text.add_spelling_cost(np.array([1.0, 2.0])).tolist() == [1, 9]
    # Surprisals of another text are refused.
    with pytest.raises(DataError, match="9 surprisals for a text of 10 scored tokens: score again"):
        scored_text(10).add_spelling_cost(np.ones(9))
    spelling = SpellingModel(["sea", "seas", "tea", "teas", "eat", "seat"])
    likely, unlikely, foreign = spelling.nll(["seats", "ttsse", "sée"])
    assert likely < unlikely
    assert foreign > UNIFORM_CHAR_NLL
    assert spelling.nll([]).shape == (0,)


def test_passages_are_evenly_spaced_and_together_as_long_as_allowed() -> None:
    # 500 lines of 20 characters: fifty passages of 2,000 / 50 = 40 characters, two lines in every ten.
    text = "four and four letter\n" * 500
    passages = find_passages(text.removesuffix("\n"), 2_000, 10_000)
    assert [begin for begin, _ in passages] == list(range(0, 10_500, 210))
    assert {text[begin:end] for begin, end in passages} == {"four and four letter\nfour and four letter\n"}
    # A text without a blank is one passage.
    assert find_passages("x" * 10_000, 1_000, 10_000) == [(0, 10_000)]


def test_each_part_is_scored_by_models_of_the_rest() -> None:
    # One sentence again and again, except for a part without any order.
    repeated, part = np.resize([1, 2, 3, 4, 2, 5], 1500), np.random.default_rng(0).integers(1, 6, 300)
    bits = list(fold_bits(np.insert(repeated, 1200, part), 6, 300))
    assert len(bits) == 6
    model = KneserNey(count_ngrams(repeated, 6, 5), 3)
    assert bits[4][1] == pytest.approx(token_nll(model, part).mean() / np.log(2))
    assert min(bits[4]) > 2 > 0.5 > max(value for index in (0, 1, 2, 3, 5) for value in bits[index])


# A short text and one that is scored in passages have no folds.
@pytest.mark.parametrize(
    ("num_test_lines", "max_chars", "num_folds"),
    [(10, 10_000, 10), (40, 10_000, 5), (1, 10_000, None), (40, 1_000, None)],
)
def test_folds_are_as_long_as_test(
    num_test_lines: int, max_chars: int, num_folds: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the sea came in\nand went out again\n" * size for size in (100, 10, num_test_lines)]
    layout = encode(Layout(tmp_path), ["char"], " ", *texts)
    monkeypatch.setattr("seqlm.pipeline.score.ngrams.Heldout", partial(Heldout, max_chars=max_chars))
    folds = cross_validate(layout)
    folds.write(tmp_path / "folds.json")
    if num_folds is None:
        assert folds == Folds(bits=[], test_blocks=[])
        assert Folds.load(tmp_path / "folds.json") is None
        return
    assert [len(bits) for bits in folds.bits] == [num_folds, num_folds]
    # About 35 characters a pair of lines, and at least 20 a block.
    assert [len(blocks) for blocks in folds.test_blocks] == [min(num_test_lines * 35 // 20, 50)] * 2
    assert Folds.load(tmp_path / "folds.json") == folds
