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
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text
from seqlm.core.layout import Layout
from seqlm.core.text import words
from seqlm.models.scored_text import NUM_BLOCKS, Ids, Stream, Streams, chars_up_to_first
from seqlm.models.spelling import spelling_costs
from seqlm.pipeline.preprocess.splitting import require_splits
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
    passages, last, size = list[Range](), 0, len(text) + 1
    for target in np.arange(num_passages) * size / num_passages:
        end = target + max_chars / num_chars * size / num_passages
        begin = max(_after_blank(text, int(target)), last)
        last = max(_after_blank(text, int(end)), last)
        if begin < last:
            passages.append((begin, last))
    return passages


def _after_blank(text: str, start: int) -> int:
    """Return the first position from ``start`` that follows a space or a line end; the end of the
    text if none does."""
    if start == 0:
        return 0
    blank = _BLANK.search(text, start - 1)
    return blank.end() if blank else len(text)


class Heldout:
    """The text of each split that is scored, as streams of one kind of token, each made when it is
    first asked for."""

    def __init__(self, layout: Layout, kind: Kind, max_chars: int = MAX_CHARS) -> None:
        """Of a split with more than ``max_chars`` characters, passages are scored."""
        self._layout, self._kind, self._max_chars = layout, kind, max_chars
        self.stream = cache(self._stream)
        """Returns the scored text of a split with its tokens."""
        self._passages = cache(self._find_passages)

    @property
    def streams(self) -> Streams:
        """The scored text of each split."""
        return {split: self.stream(split) for split in SPLITS}

    @cached_property
    def test_tokens(self) -> list[str]:
        """The tokens of test that are read and scored, as they appear in the text, unknown ones
        included."""
        split = self._corpus.splits["test"]
        _, ranges = self._passages("test")
        return [token for begin, end in ranges for token in split.texts(begin, end)]

    def head(self, name: str, num_tokens: int) -> Stream:
        """Return the first ``num_tokens`` tokens of a split, at most ``max_chars``, read as one
        text; its scored text if it has no more."""
        vocab, split = self._corpus.vocab, self._corpus.splits[name]
        if num_tokens >= len(split):
            return self.stream(name)
        num_tokens = min(num_tokens, self._max_chars)
        lengths = split.lengths(1, num_tokens)
        num_chars = int(lengths.sum())
        if not vocab.token_kind.is_lossless:  # the blanks between words count too: an estimate
            num_chars = round(vocab.splits[name].num_chars * (num_tokens - 1) / (len(split) - 1))
        return Stream(
            input_ids=np.asarray(split.ids[:num_tokens]),
            is_scored=np.arange(num_tokens) > 0,
            lengths=lengths,
            num_chars=num_chars,
            spelling=self._spelling_costs[split.distinct_ids(1, num_tokens)],
        )

    @cached_property
    def _corpus(self) -> EncodedCorpus:
        require_splits(self._layout.splits)
        return load_corpus(self._layout.corpus(self._kind), self._kind)

    @cached_property
    def _spelling_costs(self) -> NDArray[np.float64]:
        """What it costs to spell each token of the vocabulary, which is nothing, and each one that
        it lacks."""
        vocab = self._corpus.vocab
        unknown = spelling_costs(vocab, self._corpus.unknown_tokens)
        return np.concatenate([np.zeros(len(vocab)), unknown])

    def _find_passages(self, name: str) -> tuple[list[str], list[Range]]:
        """Return the passages of a split that are scored, as texts and as ranges of tokens."""
        vocab, split = self._corpus.vocab, self._corpus.splits[name]
        text = read_text(self._layout.split(name)).removesuffix("\n")
        passages = find_passages(text, self._max_chars, vocab.splits[name].num_chars)
        offsets = token_offsets(vocab, split.ids, text, list(chain.from_iterable(passages)))
        ranges = zip(offsets[::2], offsets[1::2], strict=True)
        texts = [text[begin:end] for begin, end in passages]
        return texts, [(begin, end) for begin, end in ranges if begin < end]

    def _stream(self, name: str) -> Stream:
        vocab, split = self._corpus.vocab, self._corpus.splits[name]
        texts, ranges = self._passages(name)
        chars = sum(len(text.replace("\n", vocab.line_separator)) for text in texts)
        lengths = np.concatenate([split.lengths(*tokens) for tokens in ranges])[1:]
        ids = np.concatenate([split.distinct_ids(*tokens) for tokens in ranges])[1:]
        num_chars, separators = int(lengths.sum()), 0.0
        if not vocab.token_kind.is_lossless:
            (first,) = split.texts(ranges[0][0], ranges[0][0] + 1)
            num_chars = chars - chars_up_to_first(vocab, "".join(texts), first)
            separators = count_separators(texts, vocab.line_separator).nll(vocab.separators)
        input_ids, is_scored = with_warmup(split.ids, ranges)
        return Stream(
            num_chars=num_chars,
            lengths=lengths,
            separator_nll=separators,
            share=chars / vocab.splits[name].num_chars,
            spelling=self._spelling_costs[ids],
            input_ids=input_ids,
            is_scored=is_scored,
        )


def with_warmup(ids: Ids, ranges: Sequence[Range]) -> tuple[Ids, NDArray[np.bool_]]:
    """Return what a model reads to score ranges of tokens, and which of it is scored: not the very
    first token, nor up to :data:`WARMUP` tokens before each further range."""
    input_ids, is_scored, last = list[Ids](), list[NDArray[np.bool_]](), ranges[0][0]
    for begin, end in ranges:
        start = max(begin - WARMUP, last)
        input_ids.append(np.asarray(ids[start:end]))
        is_scored.append(np.arange(start, end) >= begin)
        last = end
    is_scored[0][0] = False
    return np.concatenate(input_ids), np.concatenate(is_scored)


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
