"""Selects the text of each split that is scored, and prices the tokens that the vocabulary lacks."""

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.layout import Layout
from seqlm.heldout.passages import Passage, find_passages, token_offsets
from seqlm.heldout.scored_text import Stream, stream_of, unknown_share
from seqlm.heldout.spelling import SeparatorModel, count_separators, spelling_costs
from seqlm.heldout.store import Selection, save_heldout
from seqlm.vocab.corpus import EncodedSplit, load_corpus
from seqlm.vocab.kinds import Kind
from seqlm.vocab.vocabulary import Vocab


def select_heldout(layout: Layout, kind: Kind, max_chars: int) -> dict[str, Selection]:
    """Select what is scored of each split, about ``max_chars`` characters at most; write and return it.

    Raises DataError if the text of the splits is not the one that was encoded.
    """
    corpus = load_corpus(layout.corpus(kind), kind)
    costs = spelling_costs(corpus.vocab, corpus.unknown_tokens)
    arrays: dict[str, NDArray[Any]] = {"spelling_costs": costs}
    cost_of = dict(zip(corpus.unknown_tokens, costs.tolist(), strict=True))
    selections, test_tokens = {}, list[str]()
    separators = None
    for name, split in corpus.splits.items():
        passages = find_passages(layout.split(name), corpus.vocab.num_chars[name], max_chars)
        selection, tokens, ends = _select(name, split, passages)
        if not corpus.vocab.token_kind.is_lossless:
            texts = (count_separators(passage.read(), corpus.vocab.line_separator) for passage in passages)
            counts = reduce(operator.add, texts)
            separators = separators or SeparatorModel.of(counts)  # those of train, which is the first split
            selection = replace(selection, separator_nats=separators.nats(counts))
        selections[name] = selection
        arrays |= {
            f"ends_{name}": ends,
            f"costs_{name}": np.array([0.0 if token in corpus.vocab else cost_of[token] for token in tokens]),
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
    ids = np.concatenate([split.ids[begin:end] for begin, end in ranges])
    ends = np.cumsum(np.concatenate([split.lengths(begin, end) for begin, end in ranges]))
    num_chars = sum(passage.num_chars(vocab.line_separator) for passage in passages)
    # Unless the tokens are the whole text, the blanks between words count as characters too.
    scored_chars = (
        ends[-1] - ends[0] if vocab.token_kind.is_lossless else num_chars - _chars_up_to_first(vocab, passages)
    )
    selection = Selection(
        [list(pair) for pair in ranges], int(scored_chars), unknown_share(ids), 0.0, num_chars / vocab.num_chars[name]
    )
    return selection, [token for tokens in texts for token in tokens], ends


def _chars_up_to_first(vocab: Vocab, passages: Sequence[Passage]) -> int:
    """Return how many characters some passages have up to and including their first token."""
    num_chars = 0
    for passage in passages:
        text = passage.read()
        num_chars += chars_up_to_first_token(vocab, text)
        if vocab.tokenize(text):
            break
    return num_chars


def encode_text(vocab: Vocab, text: str) -> tuple[Stream, list[str]]:
    """Return a cleaned text that is no split of the corpus as a stream, and its tokens."""
    tokens = vocab.tokenize(text)
    ids, ends = vocab.encode(tokens), np.cumsum(vocab.lengths(tokens))
    chars = len(text.replace("\n", vocab.line_separator)) - chars_up_to_first_token(vocab, text)
    unknown = [token for token in tokens if token not in vocab]
    costs = np.zeros(len(tokens))
    costs[ids == 0] = spelling_costs(vocab, unknown)
    return stream_of(ids, costs, ends, chars), tokens


def chars_up_to_first_token(vocab: Vocab, text: str) -> int:
    """Return how many characters a text has up to and including its first token, with lines joined."""
    joined, tokens = text.replace("\n", vocab.line_separator), vocab.tokenize(text)
    if not tokens:
        return len(joined)
    return vocab.token_kind.characters_before_first(joined) + vocab.token_kind.length(tokens[0])


def _is_text_of(vocab: Vocab, tokens: Sequence[str], text: str) -> bool:
    if vocab.token_kind.has_unknown:
        return list(tokens) == vocab.tokenize(text)
    # The space before a passage belongs to its first token, the one at its end to the next passage.
    return vocab.join(tokens).strip() == text.replace("\n", vocab.line_separator).strip()
