"""The splits as a score sees them: streams of tokens, and what their tokens stand for."""

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
    """One split, encoded as one kind of token, and what its tokens stand for."""

    ids: NDArray[np.integer]
    num_chars: int
    """Characters of the split, lines joined: the same for both kinds."""
    unknown_costs: Nats
    """What each token costs beside the model's own surprisal: 0 where the vocabulary knows it."""
    ends: NDArray[np.int64]
    """How many characters of tokens have passed after each token: where a token lies in the text."""

    @property
    def unknown_share(self) -> float:
        """Share of the scored tokens that the vocabulary lacks."""
        return float(np.mean(self.ids[1:] == 0)) if len(self.ids) > 1 else 0.0

    def beginning(self, num_tokens: int) -> "Stream":
        """Return the stream's first tokens alone."""
        # Joined by nothing, one character is one token; otherwise the share of the characters is taken.
        chars = round(self.num_chars * num_tokens / len(self.ids))
        return Stream(self.ids[:num_tokens], chars, self.unknown_costs[:num_tokens], self.ends[:num_tokens])


Streams = dict[str, Stream]
"""Split -> stream."""


def read_streams(layout: Layout, kind: Kind) -> Streams:
    """Return every split as a stream of one kind of token."""
    vocab = Vocab.load(layout.vocab(kind))
    spelling = spelling_model(vocab)
    found: Streams = {}
    for split in SPLITS:
        tokens = [t for block in token_blocks(layout.split(split), kind, vocab.line_separator) for t in block]
        found[split] = as_stream(
            vocab, load_split(layout.corpus(kind), split), tokens, vocab.num_chars[split], spelling
        )
    return found


def as_stream(
    vocab: Vocab, ids: NDArray[np.integer], tokens: list[str], num_chars: int, spelling: SpellingModel
) -> Stream:
    """Return a text as a stream; ``tokens`` are its tokens as text, the unknown ones too."""
    costs = np.zeros(len(ids))
    unknown = np.flatnonzero(np.asarray(ids) == 0)
    if vocab.kind == "char":
        costs[unknown] = NATS_OF_ANY_CHARACTER
    elif len(unknown):
        costs[unknown] = spelling.nats([tokens[place] for place in unknown])
    ends = np.cumsum([len(token) for token in tokens])
    return Stream(ids, num_chars, costs, ends)


def spelling_model(vocab: Vocab) -> SpellingModel:
    """Return the model that spells words which a word vocabulary lacks."""
    return SpellingModel([token for token in vocab.tokens if token != UNKNOWN])
