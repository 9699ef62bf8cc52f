"""The splits as a score sees them: streams of tokens, and what their tokens stand for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlm.core.layout import Layout
from seqlm.core.metrics import Nats
from seqlm.score.spelling import NATS_OF_ANY_CHARACTER, SpellingModel
from seqlm.vocab.streams import SPLITS, load_split, token_blocks
from seqlm.vocab.vocabulary import UNKNOWN, Kind, Vocab


@dataclass(frozen=True)
class Stream:
    """One split, encoded as one kind of token, and what its tokens stand for.

    Tokens 2..N are scored, each given all before it: the first token, and what stands before
    it, costs nothing, so that its characters are not counted either, of whichever kind it is.
    """

    ids: NDArray[np.integer]
    scored_chars: int
    """Characters that follow the first token, lines joined: what bits per character divide by."""
    unknown_costs: Nats
    """What each token costs beside the model's own surprisal: 0 where the vocabulary knows it."""
    ends: NDArray[np.int64]
    """How many characters of tokens have passed after each token: where a token lies in the text."""

    @property
    def unknown_share(self) -> float:
        """Share of the scored tokens that the vocabulary lacks."""
        return float(np.mean(self.ids[1:] == 0)) if len(self.ids) > 1 else 0.0

    def charged(self, nats: Nats) -> Nats:
        """Return surprisals of tokens 2..N with what the unknown ones cost besides."""
        return nats + self.unknown_costs[1:]

    def beginning(self, num_tokens: int) -> "Stream":
        """Return the stream's first tokens alone."""
        # Joined by nothing, one character is one token; otherwise the share of the characters is taken.
        chars = round(self.scored_chars * (num_tokens - 1) / (len(self.ids) - 1))
        return Stream(self.ids[:num_tokens], chars, self.unknown_costs[:num_tokens], self.ends[:num_tokens])


Streams = dict[str, Stream]
"""Split -> stream."""


def read_streams(layout: Layout, kind: Kind) -> Streams:
    """Return every split as a stream of one kind of token."""
    vocab = Vocab.load(layout.vocab(kind))
    spelling = spelling_model(vocab)
    found: Streams = {}
    for split in SPLITS:
        path, separator = layout.split(split), vocab.line_separator
        tokens = [t for block in token_blocks(path, kind, separator) for t in block]
        text = (block for block in token_blocks(path, "char", separator) if isinstance(block, str))
        scored_chars = vocab.num_chars[split] - chars_of_first(vocab.kind, tokens, text)
        found[split] = as_stream(vocab, load_split(layout.corpus(kind), split), tokens, scored_chars, spelling)
    return found


def chars_of_first(kind: Kind, tokens: Sequence[str], text: Iterable[str]) -> int:
    """Return how many characters of a text end with its first token: the token's, and those of separators before it.

    ``text`` is the text in blocks, its lines joined.
    """
    separators = "" if kind == "char" else " \n"
    before = 0
    for block in text:
        rest = block.lstrip(separators)
        before += len(block) - len(rest)
        if rest:
            break
    return before + len(tokens[0]) if tokens else 0


def as_stream(
    vocab: Vocab, ids: NDArray[np.integer], tokens: list[str], scored_chars: int, spelling: SpellingModel
) -> Stream:
    """Return a text as a stream; ``tokens`` are its tokens as text, the unknown ones too."""
    costs = np.zeros(len(ids))
    unknown = np.flatnonzero(np.asarray(ids) == 0)
    if vocab.kind == "char":
        costs[unknown] = NATS_OF_ANY_CHARACTER
    elif len(unknown):
        costs[unknown] = spelling.nats([tokens[place] for place in unknown])
    ends = np.cumsum([len(token) for token in tokens])
    return Stream(ids, scored_chars, costs, ends)


def spelling_model(vocab: Vocab) -> SpellingModel:
    """Return the model that spells words which a word vocabulary lacks."""
    return SpellingModel([token for token in vocab.tokens if token != UNKNOWN])
