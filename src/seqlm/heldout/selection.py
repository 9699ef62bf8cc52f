"""Selects the text of each split that is scored, and prices the tokens that the vocabulary lacks.

All of a split is scored, or evenly spaced passages of a long one. Passages begin and end after a space or a line end,
so that they cut no word and are the same text for every model, whatever its tokens. A token that begins with the space
before its word belongs to the passage of the word, and so does that space.

Two reference models are cross-validated, to see how much parts of one text differ. Each model scores several parts of
train that are as long as test, trained on the rest. The spread of these values is what one value on one test part does
not show.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_errors
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.core.text import BLOCK_BYTES, count_text
from seqlm.heldout.scored_text import (
    NUM_BLOCKS,
    Folds,
    Ids,
    Selection,
    Stream,
    load_heldout,
    save_heldout,
    stream_of,
    unknown_share,
)
from seqlm.heldout.spelling import BLANKS, count_separators, own_separator_nats, spelling_costs, unknown_costs
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.vocab.corpus import EncodedSplit, load_corpus
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab

_BLANK = re.compile(rb"[ \n]")


@dataclass(frozen=True)
class TextPosition:
    """A position in the file of a split, and the size of the text before it."""

    byte: int
    characters: int
    """Without line ends."""
    line_ends: int
    """Without the last one of the split, which is no token."""
    words: int

    def num_chars(self, line_separator: str) -> int:
        """Return the number of characters before this position, with lines joined."""
        return self.characters + self.line_ends * len(line_separator)


@dataclass(frozen=True)
class Passage:
    """A part of a split."""

    path: Path
    begin: TextPosition
    end: TextPosition

    def num_chars(self, line_separator: str) -> int:
        """Return the number of characters of the passage, with lines joined."""
        return self.end.num_chars(line_separator) - self.begin.num_chars(line_separator)

    def read(self) -> str:
        """Return the passage with its line ends, except the last one of the split."""
        with self.path.open("rb") as file:
            file.seek(self.begin.byte)
            text = file.read(self.end.byte - self.begin.byte).decode()
            return text if file.read(1) else text.removesuffix("\n")


def find_passages(
    path: Path, num_chars: int, max_chars: int, *, num_passages: int = NUM_BLOCKS, block_bytes: int = BLOCK_BYTES
) -> list[Passage]:
    """Return the passages of a split that are scored, in order: about ``max_chars`` characters, or all of it.

    ``num_chars`` is the number of characters of the split. Raises DataError if its file is missing.
    """
    with read_errors(path), path.open("rb") as file:
        offsets = [0, file.seek(0, SEEK_END)]
        if num_chars > max_chars:
            offsets = _boundaries(file, offsets[1], max_chars / num_chars, num_passages, block_bytes)
    positions = _positions(path, offsets, block_bytes)
    return [Passage(path, begin, end) for begin, end in zip(positions[::2], positions[1::2], strict=True)]


def _boundaries(file: BinaryIO, size: int, share: float, num_passages: int, block_bytes: int) -> list[int]:
    """Return where passages begin and end, in turn, in bytes; together they are about a ``share`` of the file."""
    boundaries: list[int] = []
    last = 0
    for target in np.arange(num_passages) * size / num_passages:
        begin = max(_after_blank(file, int(target), block_bytes), last)
        last = max(_after_blank(file, int(target + share * size / num_passages), block_bytes), last)
        if begin < last:
            boundaries += [begin, last]
    return boundaries


def _after_blank(file: BinaryIO, start: int, block_bytes: int) -> int:
    """Return the first position from ``start`` that follows a space or a line end; the end of the text if none does."""
    if start == 0:
        return 0
    start = file.seek(start - 1)
    while block := file.read(block_bytes):
        if blank := _BLANK.search(block):
            return start + blank.end()
        start += len(block)
    return start


def _positions(path: Path, offsets: Sequence[int], block_bytes: int) -> list[TextPosition]:
    """Return the positions at increasing byte offsets: the beginning or end of the text, or after a blank."""
    sizes = [astuple(count_text(path, block_bytes, start, stop)) for start, stop in pairwise([0, *offsets])]
    before, size = np.cumsum(sizes, axis=0).tolist(), path.stat().st_size
    return [
        TextPosition(offset, characters, lines - (offset == size), words)
        for offset, (lines, characters, words) in zip(offsets, before, strict=True)
    ]


_BLOCK = 1 << 20


def token_offsets(vocab: Vocab, ids: NDArray[np.integer], positions: Sequence[TextPosition]) -> list[int]:
    """Return how many tokens of a split's ``ids`` end before each of some increasing positions."""
    kind, separator = vocab.token_kind, vocab.line_separator
    if not kind.is_lossless:
        return [position.words for position in positions]
    chars = [position.num_chars(separator) for position in positions]
    return chars if kind.is_character else _tokens_within(vocab.lengths(vocab.tokens), ids, chars)


def _tokens_within(lengths: NDArray[np.int64], ids: NDArray[np.integer], chars: Sequence[int]) -> list[int]:
    """Return how many tokens fit into each of some increasing numbers of characters."""
    found: list[int] = []
    before = 0
    for start in range(0, len(ids), _BLOCK):
        ends = before + np.cumsum(lengths[np.asarray(ids[start : start + _BLOCK])])
        before = int(ends[-1])
        # If the block ends at the position itself, bytes that end its last character may follow in the next block.
        while len(found) < len(chars) and chars[len(found)] < before:
            found.append(start + int(np.searchsorted(ends, chars[len(found)], side="right")))
    return found + [len(ids)] * (len(chars) - len(found))


def select_heldout(layout: Layout, kind: Kind, max_chars: int) -> dict[str, Selection]:
    """Select what is scored of each split, about ``max_chars`` characters at most; write and return it.

    Raises DataError if the text of the splits is not the one that was encoded.
    """
    corpus = load_corpus(layout.corpus(kind), kind)
    costs = spelling_costs(corpus.vocab, corpus.unknown_tokens)
    arrays: dict[str, NDArray[Any]] = {"spelling_costs.npy": costs}
    cost_of = dict(zip(corpus.unknown_tokens, costs.tolist(), strict=True))
    selections, test_tokens = {}, list[str]()
    separators = None
    for name, split in corpus.splits.items():
        passages = find_passages(layout.split(name), corpus.vocab.num_chars[name], max_chars)
        selection, tokens, ends = _select(name, split, passages)
        if not corpus.vocab.token_kind.is_lossless:
            counts = count_separators([passage.read() for passage in passages], corpus.vocab.line_separator)
            separators = separators or counts.probabilities()  # those of train, which is the first split
            selection = replace(selection, separator_nats=counts.nats(separators))
        selections[name] = selection
        arrays |= {
            f"ends_{name}.npy": ends,
            f"costs_{name}.npy": np.array([cost_of.get(token, 0.0) for token in tokens]),
        }
        if name == "test":
            test_tokens = tokens
    save_heldout(layout.heldout(kind), kind, max_chars, selections, arrays, test_tokens)
    return selections


def _select(
    name: str, split: EncodedSplit, passages: Sequence[Passage]
) -> tuple[Selection, list[str], NDArray[np.int64]]:
    """Return which tokens of a split the passages contain, these tokens, and where they end in the text."""
    vocab = split.vocab
    positions = [position for passage in passages for position in (passage.begin, passage.end)]
    offsets = token_offsets(vocab, split.ids, positions)
    ranges = list(zip(offsets[::2], offsets[1::2], strict=True))
    texts = [split.texts(begin, end) for begin, end in ranges]
    for passage, tokens, (begin, end) in zip(passages, texts, ranges, strict=True):
        if len(tokens) != end - begin or not _is_text_of(vocab, tokens, passage.read()):
            raise DataError(f"{passage.path}: not the text that was encoded: run the vocab stage again")
    found = [token for tokens in texts for token in tokens]
    ids = np.concatenate([split.ids[begin:end] for begin, end in ranges])
    ends = np.cumsum(np.concatenate([split.lengths(begin, end) for begin, end in ranges]))
    num_chars = sum(passage.num_chars(vocab.line_separator) for passage in passages)
    scored_chars = int(ends[-1] - ends[0])
    if not vocab.token_kind.is_lossless:  # the blanks between words count as characters too
        scored_chars = num_chars - _chars_up_to_first(vocab, "".join(passage.read() for passage in passages), found)
    share = num_chars / vocab.num_chars[name]
    return Selection([list(pair) for pair in ranges], scored_chars, unknown_share(ids), 0.0, share), found, ends


def encode_text(vocab: Vocab, text: str) -> tuple[Stream, list[str]]:
    """Return a cleaned text that is no split of the corpus as a stream, and its tokens."""
    tokens = vocab.tokenize(text)
    ids, ends = vocab.encode(tokens), np.cumsum(vocab.lengths(tokens))
    chars = len(text.replace("\n", vocab.line_separator)) - _chars_up_to_first(vocab, text, tokens)
    stream = stream_of(ids, unknown_costs(vocab, tokens, ids), ends, chars)
    if vocab.token_kind.is_lossless:
        return stream, tokens
    return replace(stream, separator_nats=own_separator_nats([text], vocab.line_separator)), tokens


def _chars_up_to_first(vocab: Vocab, text: str, tokens: Sequence[str]) -> int:
    """Return how many characters a text has up to and including the first of its tokens, with lines joined."""
    joined = text.replace("\n", vocab.line_separator)
    if not tokens:
        return len(joined)
    num_blanks = 0 if vocab.token_kind.is_lossless else len(joined) - len(joined.lstrip(BLANKS))
    return num_blanks + vocab.token_kind.length(tokens[0])


def _is_text_of(vocab: Vocab, tokens: Sequence[str], text: str) -> bool:
    if vocab.token_kind.has_unknown:
        return list(tokens) == vocab.tokenize(text)
    # The space before a passage belongs to its first token, the one at its end to the next passage.
    return vocab.join(tokens).strip() == text.replace("\n", vocab.line_separator).strip()


ORDERS = (5, 3)
"""Of the reference models; the second one shows how much differences between models differ between parts."""
MIN_FOLDS, MAX_FOLDS = 5, 20
_MIN_FOLD_CHARS = 100


def cross_validate(layout: Layout) -> Folds:
    """Cross-validate Kneser-Ney models over the characters of train; write and return what they show.

    There are no values if test is scored in passages, because those show the spread themselves, or if train is too
    short.
    """
    heldout = load_heldout(layout.heldout("char"), "char")
    splits = load_corpus(layout.corpus("char"), "char").splits
    train, test, vocab_size = splits["train"].ids, splits["test"].ids, len(splits["train"].vocab)
    text = heldout.text("test")
    length = min(len(test), len(train) // MIN_FOLDS)
    folds = Folds([], [])
    if text.share == 1 and length >= _MIN_FOLD_CHARS:
        blocks = [text.block_bits(nats, text.num_blocks) for nats in _nats(train, test, vocab_size)]
        bits = np.transpose(list(fold_bits(np.asarray(train), vocab_size, length)))
        folds = Folds(bits.tolist(), np.asarray(blocks).tolist())
    folds.save(layout.heldout("char"))
    return folds


def fold_bits(ids: Ids, vocab_size: int, length: int) -> Iterator[list[float]]:
    """Yield the bits per token of each model on parts of a text of about ``length`` tokens, trained on the rest.

    A text that has more than :data:`MAX_FOLDS` parts is cut off after them.
    """
    num_folds = min(round(len(ids) / length), MAX_FOLDS)
    parts = np.array_split(ids[: round(num_folds * length * 1.1)], num_folds)
    for index, part in enumerate(parts):
        rest = np.concatenate([*parts[:index], *parts[index + 1 :]])
        yield [float(nats.mean() / math.log(2)) for nats in _nats(rest, part, vocab_size)]


def _nats(train: Ids, ids: Ids, vocab_size: int) -> list[Nats]:
    """Return the surprisals of each reference model."""
    counts = count_ngrams(train, vocab_size, max(ORDERS))
    return [token_nll(KneserNey(counts, order), ids) for order in ORDERS]
