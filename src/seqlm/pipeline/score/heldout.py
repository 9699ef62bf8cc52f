"""The text that models are scored on: which part of each split, as tokens of one kind, and what
unknown ones cost.

All of a split is scored, or evenly spaced passages of a long one. Passages begin and end after a
space or a line end, so that they cut no word and are the same text for every model, whatever its
tokens. A token that begins with the space before its word belongs to the passage of the word, and
so does that space. The selection follows from the corpus, so it is made where it is needed and not
stored.
"""

import re
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.text import words
from seqlm.models.scored_text import NUM_BLOCKS, Ids, Stream, Streams, chars_up_to_first
from seqlm.models.spelling import spelling_costs
from seqlm.vocab.corpus import SPLITS, EncodedCorpus, load_corpus
from seqlm.vocab.kinds import Kind
from seqlm.vocab.separators import count_separators
from seqlm.vocab.vocabulary import Vocab

MAX_CHARS = 300_000
"""A longer split is scored on passages that together have about this many characters: enough to
tell models apart."""
WARMUP = 512
"""Tokens that a model reads before a passage without being scored on them."""
_BLANK = re.compile("[ \n]")
Range = tuple[int, int]


def find_passages(
    text: str, max_chars: int, num_chars: int, num_passages: int = NUM_BLOCKS
) -> list[Range]:
    """Return where the passages of a split that are scored begin and end: about ``max_chars``
    characters, or all of it.

    ``text`` is the split without its last line end, ``num_chars`` its number of characters with
    lines joined.
    """
    if num_chars <= max_chars:
        return [(0, len(text))]
    found, last, size = list[Range](), 0, len(text) + 1
    for target in np.arange(num_passages) * size / num_passages:
        begin = max(_after_blank(text, int(target)), last)
        last = max(
            _after_blank(text, int(target + max_chars / num_chars * size / num_passages)), last
        )
        if begin < last:
            found.append((begin, last))
    return found


def _after_blank(text: str, start: int) -> int:
    """Return the first position from ``start`` that follows a space or a line end; the end of the
    text if none does."""
    if start == 0:
        return 0
    found = _BLANK.search(text, start - 1)
    return found.end() if found else len(text)


class Heldout:
    """The scored text of all splits, as tokens of one kind. What is asked for is found in the
    corpus, and then kept."""

    def __init__(self, layout: Layout, kind: Kind, max_chars: int = MAX_CHARS) -> None:
        """Name the kind of token; a split with more than ``max_chars`` characters is scored in
        passages."""
        self._layout, self._kind, self._max_chars = layout, kind, max_chars
        self.stream = cache(self._stream)
        """Returns the scored text of a split with its tokens."""

    @cached_property
    def streams(self) -> Streams:
        """The scored text of each split."""
        return {split: self.stream(split) for split in SPLITS}

    def test_tokens(self) -> list[str]:
        """Return the tokens of test that are read and scored, as they appear in the text, unknown
        ones included."""
        ranges = self._selected("test")[-1]
        return [token for each in ranges for token in self._corpus.splits["test"].texts(*each)]

    def beginning(self, split: str, num_tokens: int) -> Stream:
        """Return the first ``num_tokens`` tokens of a split, read as one text; its scored text if
        it has no more.

        They are no more tokens than a long split has scored characters.
        """
        encoded, vocab = self._corpus.splits[split], self._corpus.vocab
        if num_tokens >= len(encoded):
            return self.stream(split)
        num_tokens = min(num_tokens, self._max_chars)
        lengths, costs = (
            encoded.lengths(1, num_tokens),
            self._costs[encoded.distinct_ids(1, num_tokens)],
        )
        chars = int(lengths.sum())
        if (
            not vocab.token_kind.is_lossless
        ):  # the blanks between words count as characters too: an estimate
            chars = round(vocab.num_chars[split] * (num_tokens - 1) / (len(encoded) - 1))
        return Stream.from_ids(np.asarray(encoded.ids[:num_tokens]), lengths, costs, chars)

    @cached_property
    def _corpus(self) -> EncodedCorpus:
        return load_corpus(self._layout.corpus(self._kind), self._kind)

    @cached_property
    def _costs(self) -> NDArray[np.float64]:
        """What it costs to spell each token of the vocabulary, which is nothing, and each one that
        it lacks."""
        corpus = self._corpus
        return np.concatenate(
            [np.zeros(len(corpus.vocab)), spelling_costs(corpus.vocab, corpus.unknown_tokens)]
        )

    def _selected(self, name: str) -> tuple[str, list[Range], list[Range]]:
        """Return a split, the passages of it that are scored, and their first tokens and the first
        ones after them."""
        vocab, split = self._corpus.vocab, self._corpus.splits[name]
        text = read_text(self._layout.split(name)).removesuffix("\n")
        passages = find_passages(text, self._max_chars, vocab.num_chars[name])
        offsets = token_offsets(
            vocab, split.ids, text, [place for each in passages for place in each]
        )
        ranges = zip(offsets[::2], offsets[1::2], strict=True)
        return text, passages, [each for each in ranges if each[0] < each[1]]

    def _stream(self, name: str) -> Stream:
        vocab, split = self._corpus.vocab, self._corpus.splits[name]
        text, passages, ranges = self._selected(name)
        input_ids, is_scored, last = list[Ids](), list[NDArray[np.bool_]](), ranges[0][0]
        for begin, end in ranges:
            start = max(begin - WARMUP, last)
            input_ids.append(np.asarray(split.ids[start:end]))
            is_scored.append(np.arange(start, end) >= begin)
            last = end
        scored = np.concatenate(is_scored)
        scored[:1] = False  # the first token is only read
        lengths = np.concatenate([split.lengths(*each) for each in ranges])[1:]
        texts = [text[begin:end] for begin, end in passages]
        chars = sum(len(each.replace("\n", vocab.line_separator)) for each in texts)
        num_chars, separators = int(lengths.sum()), 0.0
        if not vocab.token_kind.is_lossless:
            first = ranges[0][0]
            num_chars = chars - chars_up_to_first(
                vocab, "".join(texts), split.texts(first, first + 1)[0]
            )
            separators = count_separators(texts, vocab.line_separator).nll(vocab.separators)
        return Stream(
            num_chars=num_chars,
            lengths=lengths,
            separator_nll=separators,
            share=chars / vocab.num_chars[name],
            spelling=np.concatenate([self._costs[split.distinct_ids(*each)] for each in ranges])[
                1:
            ],
            input_ids=np.concatenate(input_ids),
            is_scored=scored,
        )


def token_offsets(
    vocab: Vocab, ids: NDArray[np.integer], text: str, positions: Sequence[int]
) -> list[int]:
    """Return how many tokens of a split's ``ids`` end before each of some increasing positions in
    its ``text``."""
    kind, extra = vocab.token_kind, len(vocab.line_separator) - 1  # characters for each line end
    if not kind.is_lossless:
        parts = (text[start:stop].replace("\n", " ") for start, stop in pairwise([0, *positions]))
        return [int(end) for end in np.cumsum([len(words(part)) for part in parts])]
    chars = [position + extra * text.count("\n", 0, position) for position in positions]
    if kind.is_character:
        return chars
    ends = np.cumsum(vocab.lengths(vocab.tokens)[ids])
    return [int(offset) for offset in np.searchsorted(ends, chars, side="right")]
