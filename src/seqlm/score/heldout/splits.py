"""The splits as a score sees them: streams of tokens, and what their tokens stand for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.score.heldout.passages import Passage, find_passages
from seqlm.score.heldout.spelling import NATS_OF_ANY_CHARACTER, SpellingModel
from seqlm.score.heldout.token_offsets import token_offsets
from seqlm.vocab.corpus_building import SPLITS, load_split, token_blocks
from seqlm.vocab.kinds.registry import KINDS, Kind, kind_of
from seqlm.vocab.vocabulary import UNKNOWN, Vocab

WARMUP = 512
"""Tokens that a model reads before a passage without being scored on them."""
TRAIN_SUBSET = "fitted"
"""The beginning of train that a run saw, where it did not see all."""

Ids = NDArray[np.integer]


@dataclass(frozen=True)
class Stream:
    """The text of a split that is scored, encoded as one kind of token, and what its tokens stand for.

    Tokens 2..N are scored, each given all before it: the first token, and what stands before
    it, costs nothing, so that its characters are not counted either, of whichever kind it is.
    """

    ids: Ids
    scored_chars: int
    """Characters that follow the first token, lines joined: what bits per character divide by."""
    unknown_costs: Nats
    """What each token costs beside the model's own surprisal: 0 where the vocabulary knows it."""
    ends: NDArray[np.int64]
    """How many characters of tokens have passed after each token: where a token lies in the text."""
    share: float = 1.0
    """How much of the split's text this is."""
    passages: Sequence[Passage] = ()
    """Where in its file the text stands, if it is that of a split."""
    read: Ids | None = None
    """What a model reads where that is more than ``ids``: passages have their warm-ups before them."""
    is_scored: NDArray[np.bool_] | None = None
    """For each token of ``read`` whether it is one of ``ids``."""

    @property
    def unknown_share(self) -> float:
        """Share of the scored tokens that the vocabulary lacks."""
        return float(np.mean(self.ids[1:] == 0)) if len(self.ids) > 1 else 0.0

    def with_unknown_cost(self, nats: Nats) -> Nats:
        """Return surprisals of tokens 2..N with what the unknown ones cost besides."""
        return nats + self.unknown_costs[1:]

    def nats(self, score: Callable[[Ids], Nats]) -> Nats:
        """Return the surprisals of tokens 2..N; ``score`` gives those of any tokens that a model reads as one text."""
        if self.read is None or self.is_scored is None:
            return score(self.ids)
        return score(self.read)[self.is_scored[1:]]

    def beginning(self, num_tokens: int) -> "Stream":
        """Return the first tokens alone, to be read as one text; the stream itself where it has no more."""
        if num_tokens >= len(self.ids):
            return self
        # Joined by nothing, one character is one token; otherwise the share of the characters is taken.
        chars = round(self.scored_chars * (num_tokens - 1) / (len(self.ids) - 1))
        return Stream(self.ids[:num_tokens], chars, self.unknown_costs[:num_tokens], self.ends[:num_tokens])


Streams = dict[str, Stream]
"""Split -> stream."""


def read_all_streams(layout: Layout, max_tokens: int) -> dict[Kind, Streams]:
    """Return for each kind of token of every split the text that is scored: see :func:`read_streams`."""
    return {kind: read_streams(layout, kind, max_tokens) for kind in KINDS}


def read_streams(layout: Layout, kind: Kind, max_tokens: int | None = None, fitted: int | None = None) -> Streams:
    """Return of every split the text that is scored, as a stream of one kind of token.

    It has about ``max_tokens`` characters at most: no kind has more tokens than characters, but
    where characters are written in bytes. Without a limit it is the whole split.
    ``fitted`` is how many tokens of train a run saw, if not all: the first of them are a
    stream too, :data:`TRAIN_SUBSET`.
    """
    vocab = Vocab.load(layout.vocab(kind))
    spelling = spelling_model(vocab)
    found: Streams = {}
    for split in SPLITS:
        path, num_chars = layout.split(split), vocab.num_chars[split]
        ids = load_split(layout.corpus(kind), split, mmap=True)
        found[split] = _read_stream(vocab, ids, find_passages(path, num_chars, max_tokens), num_chars, spelling)
        if split == "train" and fitted is not None and fitted < len(ids):
            first = ids[: min(fitted, max_tokens or fitted)]
            if vocab.of_kind.has_unknown:
                tokens = list(islice(chain.from_iterable(token_blocks(path, kind, vocab.line_separator)), len(first)))
                # Joined by nothing, one character is one token; otherwise the share of the characters is taken.
                chars = round(num_chars * (len(first) - 1) / (len(ids) - 1))
            else:
                tokens = vocab.decode(first.tolist())
                chars = int(vocab.lengths(tokens[1:]).sum())
            found[TRAIN_SUBSET] = as_stream(vocab, first, tokens, chars, spelling)
    return found


def _read_stream(
    vocab: Vocab, ids: Ids, passages: Sequence[Passage], num_chars: int, spelling: SpellingModel
) -> Stream:
    """Return the passages of a split, which has ``ids`` and ``num_chars`` in all, as one stream."""
    separator = vocab.line_separator
    borders = token_offsets(vocab, ids, [place for passage in passages for place in (passage.begin, passage.end)])
    scored: list[Ids] = []
    read, is_scored, costs, lengths, first_chars, last = [], [], [], [], 0, 0
    for passage, begin, end in zip(passages, borders[::2], borders[1::2], strict=True):
        text = passage.read()
        tokens = _tokens_of(vocab, ids[begin:end], text)
        if not len(tokens) == end - begin == len(ids[begin:end]):
            raise DataError(f"{passage.path}: not the text that was encoded: run the vocab stage again")
        if not last:  # the split's first token is not scored
            first_chars = _num_chars(passages[: len(scored)], separator) + chars_of_first(
                vocab.kind, tokens, [text.replace("\n", separator)]
            )
        start = max(begin - WARMUP, last) if last else begin
        scored.append(ids[begin:end])
        read.append(ids[start:end])
        is_scored.append(np.arange(start, end) >= begin)
        costs.append(_unknown_costs(vocab, scored[-1], tokens, spelling))
        lengths.append(vocab.lengths(tokens))
        last = end
    chars, ends = _num_chars(passages, separator), np.cumsum(np.concatenate(lengths))
    return Stream(
        np.concatenate(scored),
        # Tokens that are all of the text say themselves how much they are; of others the passages' blanks count too.
        int(ends[-1] - ends[0]) if vocab.of_kind.is_lossless and len(ends) else chars - first_chars,
        np.concatenate(costs),
        ends,
        chars / num_chars,
        passages,
        np.concatenate(read),
        np.concatenate(is_scored),
    )


def _num_chars(passages: Sequence[Passage], line_separator: str) -> int:
    return sum(passage.num_chars(line_separator) for passage in passages)


def chars_of_first(kind: Kind, tokens: Sequence[str], text: Iterable[str]) -> int:
    """Return how many characters of a text end with its first token: the token's, and those of separators before it.

    ``text`` is the text in blocks, its lines joined.
    """
    before = 0
    for block in text:
        skipped = kind_of(kind).characters_before_first(block)
        before += skipped
        if skipped < len(block):
            break
    return before + kind_of(kind).length(tokens[0]) if tokens else 0


def as_stream(vocab: Vocab, ids: Ids, tokens: Sequence[str], scored_chars: int, spelling: SpellingModel) -> Stream:
    """Return a text as a stream; ``tokens`` are its tokens as text, the unknown ones too."""
    return Stream(ids, scored_chars, _unknown_costs(vocab, ids, tokens, spelling), np.cumsum(vocab.lengths(tokens)))


def _tokens_of(vocab: Vocab, ids: Ids, text: str) -> list[str]:
    """Return the tokens of a passage as they stand in the text; none where it is not the text of these ids."""
    if vocab.of_kind.has_unknown:
        return vocab.tokenize(text)
    tokens = vocab.decode(ids.tolist())
    # The space before a passage's first word is of its first token, and the one at its end of the next passage's.
    return tokens if vocab.join(tokens).strip() == text.replace("\n", vocab.line_separator).strip() else []


def _unknown_costs(vocab: Vocab, ids: Ids, tokens: Sequence[str], spelling: SpellingModel) -> Nats:
    costs = np.zeros(len(ids))
    unknown = np.flatnonzero(np.asarray(ids) == 0)
    if vocab.of_kind.is_character:
        costs[unknown] = NATS_OF_ANY_CHARACTER
    elif len(unknown):
        costs[unknown] = spelling.nats([tokens[place] for place in unknown.tolist()])
    return costs


def spelling_model(vocab: Vocab) -> SpellingModel:
    """Return the model that spells words which a word vocabulary lacks."""
    return SpellingModel([token for token in vocab.tokens if token != UNKNOWN])
