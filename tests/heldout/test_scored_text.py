"""What is scored of a split: the whole, or passages behind warm-ups, the same text for all kinds of tokens."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from seqlm.core.errors import DataError
from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.smoothing import KneserNey, nats
from seqlm.rnn.scoring import stream_nll
from seqlm.rnn.scratch import ScratchRNN
from seqlm.score.heldout.splits import TRAIN_SUBSET, WARMUP, Stream, read_streams
from seqlm.score.heldout.token_offsets import token_offsets
from seqlm.vocab.corpus_building import SPLITS, load_split
from seqlm.vocab.kinds.registry import KINDS, Kind
from seqlm.vocab.vocabulary import Vocab
from subwords import build

ENOUGH = 10**6


def corpus(folder: Path, separator: str = " ", num_lines: int = 6000) -> Layout:
    """Return where the splits lie, of train of ``num_lines`` lines, val and test of a tenth; some words are unknown."""
    layout, rng = Layout(folder), np.random.default_rng(0)
    words = np.array(["the", "sea", "came", "in", "and", "went", "out", "again"])
    for split, size in zip(SPLITS, (num_lines, num_lines // 10, num_lines // 10), strict=True):
        drawn = [list(rng.choice(words, rng.integers(1, 9))) for _ in range(size)]
        for line in drawn[:: 7 if split == "test" else size + 1]:
            line[0] = f"storm{rng.integers(30)}"
        layout.split(split).parent.mkdir(parents=True, exist_ok=True)
        layout.split(split).write_text("".join(" ".join(line) + "\n" for line in drawn))
    texts = {split: layout.split(split) for split in SPLITS}
    for kind in KINDS:
        build(texts, layout.corpus(kind), kind, separator)
    return layout


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return corpus(tmp_path_factory.mktemp("corpus"))


def whole(layout: Layout, kind: Kind, split: str) -> np.ndarray:
    return load_split(layout.corpus(kind), split)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_that_is_short_enough_is_one_stream(layout: Layout, kind: Kind) -> None:
    vocab = Vocab.load(layout.vocab(kind))
    for split, stream in read_streams(layout, kind, ENOUGH).items():
        assert stream.ids.tolist() == stream.read.tolist() == whole(layout, kind, split).tolist()
        assert stream.share == 1
        tokens = vocab.tokenize(layout.split(split).read_text().removesuffix("\n"))
        assert stream.ends.tolist() == np.cumsum([len(token) for token in tokens]).tolist()
        assert (stream.unknown_costs > 0).tolist() == (stream.ids == 0).tolist()


@pytest.mark.parametrize("separator", ["", " ", "\n"])
def test_all_kinds_score_the_same_text(tmp_path: Path, separator: str) -> None:
    layout = corpus(tmp_path, separator)
    by_kind = {kind: read_streams(layout, kind, 10_000) for kind in KINDS}
    for split in SPLITS:
        char, word = by_kind["char"][split], by_kind["word"][split]
        chars = sum(passage.num_chars(separator) for passage in char.passages)
        # All but those of the first token: a letter, or a word.
        assert char.scored_chars == len(char.ids) - 1 == chars - 1
        assert chars - word.scored_chars == word.ends[0]
        assert char.share == word.share
        assert 9_500 < chars < 11_000
        text = "".join(passage.read() for passage in char.passages)
        assert text == "".join(passage.read() for passage in word.passages)
        known = Vocab.load(layout.vocab("char"))
        assert char.ids.tolist() == known.encode(text.replace("\n", separator)).tolist()
        assert word.ids.tolist() == Vocab.load(layout.vocab("word")).encode(text.split()).tolist()
        assert word.unknown_costs[word.ids > 0].sum() == 0
        subword = by_kind["subword"][split]
        pieces = Vocab.load(layout.vocab("subword"))
        # A passage's first piece has the space before it, and lacks the one at its end: of fifty passages some have
        # one more than for characters, others one less.
        joined = pieces.join(pieces.decode(subword.ids.tolist()))
        assert joined.replace(" ", "") == text.replace("\n", separator).replace(" ", "")
        assert len(joined) == subword.ends[-1] == pytest.approx(chars, abs=50)
        assert subword.scored_chars == len(joined) - subword.ends[0]
        assert (subword.unknown_costs.sum(), subword.share) == (0, char.share)


@pytest.mark.parametrize("kind", KINDS)
def test_a_counting_model_scores_a_passage_as_it_stands_in_its_text(layout: Layout, kind: Kind) -> None:
    train, vocab = whole(layout, kind, "train"), Vocab.load(layout.vocab(kind))
    model = KneserNey(count_ngrams(train, len(vocab), 3), 3)
    stream = read_streams(layout, kind, 10_000)["train"]
    found = stream.nats(partial(nats, model))
    places = [np.arange(*token_offsets(vocab, train, [passage.begin, passage.end])) for passage in stream.passages]
    assert len(places) == 50
    # Surprisal i belongs to token i + 1, and the first token of all has none.
    assert found.tolist() == nats(model, train)[np.concatenate(places)[1:] - 1].tolist()


def test_a_network_is_warm_where_a_passage_begins(layout: Layout) -> None:
    network = ScratchRNN(len(Vocab.load(layout.vocab("char"))), 16, "tanh", torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.flat.mul_(20)
    stream = read_streams(layout, "char", 10_000)["train"]
    read = []

    def score(ids: np.ndarray) -> np.ndarray:
        read.append(len(ids))
        return stream_nll(network, ids)

    found, expected = stream.nats(score), stream_nll(network, whole(layout, "char", "train"))
    places = np.concatenate([np.arange(p.begin.num_chars(" "), p.end.num_chars(" ")) for p in stream.passages])
    assert found == pytest.approx(expected[places[1:] - 1], abs=1e-4)
    assert read == [len(stream.ids) + 49 * WARMUP]


def test_passages_that_lie_close_need_no_whole_warm_up(layout: Layout) -> None:
    # Nine tenths of train are scored: what lies between two passages is read, and nothing twice.
    size = len(whole(layout, "char", "train"))
    stream = read_streams(layout, "char", round(0.9 * size))["train"]
    assert len(stream.read) <= size
    assert 0.89 < stream.share < 0.92


def test_what_a_run_saw_of_train_is_a_stream_of_its_own(layout: Layout) -> None:
    streams = read_streams(layout, "char", 10_000, fitted=3_000)
    assert streams[TRAIN_SUBSET].ids.tolist() == whole(layout, "char", "train")[:3000].tolist()
    assert streams[TRAIN_SUBSET].scored_chars == 2_999
    assert len(read_streams(layout, "char", 10_000, fitted=30_000)[TRAIN_SUBSET].ids) == 10_000
    assert TRAIN_SUBSET not in read_streams(layout, "char", 10_000, fitted=10**9)
    words = read_streams(layout, "word", 10_000, fitted=300)[TRAIN_SUBSET]
    text = " ".join(layout.split("train").read_text().split()[:300])
    assert words.scored_chars == pytest.approx(len(text), rel=0.05)


def test_the_beginning_of_a_stream() -> None:
    stream = Stream(np.arange(4), 9, np.arange(4.0), np.arange(1, 5))
    assert stream.beginning(4) is stream
    # One of three scored tokens has a third of the nine characters.
    assert (stream.beginning(2).ids.tolist(), stream.beginning(2).scored_chars) == ([0, 1], 3)


def test_a_text_that_is_not_the_one_that_was_encoded_is_refused(tmp_path: Path) -> None:
    layout = corpus(tmp_path, num_lines=100)
    with layout.split("val").open("a") as file:
        file.write("more\n")
    with pytest.raises(DataError, match=r"val\.txt: not the text that was encoded: run the vocab stage again"):
        read_streams(layout, "word", ENOUGH)


PROGRAM = """
import resource, sys
from pathlib import Path
from seqlm.core.files import sha256_of_file
from seqlm.core.layout import Layout
from seqlm.score.heldout.splits import read_streams

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

layout = Layout(Path(sys.argv[1]))
before = peak()
read_streams(layout, sys.argv[2], 100_000)
print(peak() - before)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_text(kind: Kind, tmp_path: Path) -> None:
    # Sixteen million characters, of which a tenth of a million is scored: a list of all tokens would take 130 MB
    # of pointers, and their ends and costs 256 MB more.
    layout = corpus(tmp_path, num_lines=100)
    repeat(layout, kind, 16_000_000)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60e6


def repeat(layout: Layout, kind: Kind, num_chars: int) -> None:
    """Repeat train until it has so many characters."""
    vocab, ids, text = Vocab.load(layout.vocab(kind)), whole(layout, kind, "train"), layout.split("train").read_text()
    times = num_chars // len(text)
    layout.split("train").write_text(text * times)
    # The line end between two copies is a character or a part of the first piece behind it; words lack it.
    behind = vocab.encode(vocab.tokenize("\n" + text.removesuffix("\n"))).astype(ids.dtype)
    np.save(layout.corpus(kind) / "train.npy", tiled := np.append(ids, np.tile(behind, times - 1)))
    vocab.splits["train"] = type(vocab.splits["train"])(
        len(tiled), len(text) * times - 1, 0, sha256_of_file(layout.corpus(kind) / "train.npy")
    )
    vocab.save(layout.vocab(kind))
