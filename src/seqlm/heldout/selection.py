"""Selects the text of each split that is scored, and prices the tokens that the vocabulary lacks.

All of a split is scored, or evenly spaced passages of a long one. Passages begin and end after a space or a line end,
so that they cut no word and are the same text for every model, whatever its tokens. A token that begins with the space
before its word belongs to the passage of the word, and so does that space.
"""

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_errors
from seqlm.core.layout import Layout
from seqlm.core.text import BLOCK_BYTES, count_text
from seqlm.heldout.scored_text import NUM_BLOCKS, Stream, stream_of, unknown_share
from seqlm.heldout.spelling import spelling_costs, unknown_costs
from seqlm.heldout.store import Selection, costs_in_split, save_heldout
from seqlm.vocab.corpus import load_corpus
from seqlm.vocab.kinds import Kind
from seqlm.vocab.separators import BLANKS, separator_nll
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
    """Select what is scored of each split, about ``max_chars`` characters at most; write and return it."""
    corpus = load_corpus(layout.corpus(kind), kind)
    vocab, spelling = corpus.vocab, spelling_costs(corpus.vocab, corpus.unknown_tokens)
    arrays: dict[str, NDArray[Any]] = {"spelling_costs": spelling}
    selections = {}
    for name, split in corpus.splits.items():
        num_chars = vocab.num_chars[name]
        passages = find_passages(layout.split(name), num_chars, max_chars)
        offsets = token_offsets(vocab, split.ids, [place for each in passages for place in (each.begin, each.end)])
        ranges = list(zip(offsets[::2], offsets[1::2], strict=True))
        ends = np.cumsum(np.concatenate([split.lengths(*each) for each in ranges]))
        costs = np.concatenate([costs_in_split(split, *each, spelling) for each in ranges])
        arrays |= {f"ends_{name}": ends, f"costs_{name}": costs}
        chars = sum(passage.num_chars(vocab.line_separator) for passage in passages)
        scored_chars, separators = int(ends[-1] - ends[0]), 0.0
        if not vocab.token_kind.is_lossless:
            texts = [passage.read() for passage in passages]
            first = next((begin for begin, end in ranges if begin < end), 0)
            scored_chars = chars - _chars_up_to_first(vocab, "".join(texts), split.texts(first, first + 1))
            separators = separator_nll(texts, vocab.line_separator, vocab.separators)
        ids = np.concatenate([split.ids[begin:end] for begin, end in ranges])
        figures = scored_chars, unknown_share(ids), separators, chars / num_chars
        selections[name] = Selection([list(each) for each in ranges], *figures)
    test_tokens = [token for each in ranges for token in split.texts(*each)]  # test is the last split
    save_heldout(layout.heldout(kind), max_chars, selections, arrays, test_tokens)
    return selections


def encode_text(vocab: Vocab, text: str, *, with_separators: bool = True) -> tuple[Stream, list[str]]:
    """Return a cleaned text that is no split of the corpus as a stream, and its tokens.

    ``with_separators``: with what the separators between words would cost, which takes some time.
    """
    tokens = vocab.tokenize(text)
    ids, ends = vocab.encode(tokens), np.cumsum(vocab.lengths(tokens))
    chars = len(text.replace("\n", vocab.line_separator)) - _chars_up_to_first(vocab, text, tokens)
    stream = stream_of(ids, unknown_costs(vocab, tokens, ids), ends, chars)
    if vocab.token_kind.is_lossless or not with_separators:
        return stream, tokens
    return replace(stream, separator_nll=separator_nll([text], vocab.line_separator, vocab.separators)), tokens


def _chars_up_to_first(vocab: Vocab, text: str, tokens: Sequence[str]) -> int:
    """Return how many characters a text has up to and including the first of its tokens, with lines joined."""
    joined = text.replace("\n", vocab.line_separator)
    if not tokens:
        return len(joined)
    num_blanks = 0 if vocab.token_kind.is_lossless else len(joined) - len(joined.lstrip(BLANKS))
    return num_blanks + vocab.token_kind.length(tokens[0])
