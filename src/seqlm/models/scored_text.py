"""A text that models are scored on, as tokens of one kind, and the figures that sum up surprisals
on it.

In a split of the corpus, tokens 2 to N are scored, each given all tokens before it: the first token
is only read. A long split is scored in passages. Before each passage after the first, a model reads
some tokens without being scored.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.metrics import Nll, bits_per_character, perplexity
from seqlm.vocab.separators import BLANKS
from seqlm.vocab.vocabulary import Vocab

Ids = NDArray[np.integer]

NUM_BLOCKS = 50
"""Parts that a scored text is cut into; a text that is scored in passages has as many of them."""
MIN_BLOCK_CHARS = 20


@dataclass(kw_only=True)
class Stream:
    """A text of n scored tokens, and what a model reads to score them."""

    input_ids: Ids
    """What a model reads: the scored tokens, and tokens that are only read, such as the warm-up
    before a passage."""
    is_scored: NDArray[np.bool_]
    """For each token of ``input_ids``, whether it is scored."""
    lengths: NDArray[np.int64]
    """The number of characters in each scored token; shape ``(n,)``."""
    num_chars: int
    """Scored characters, with lines joined. Bits per character divide by this number."""
    spelling: Nll
    """What it costs in nats to spell each token that the vocabulary lacks, 0 for the others; shape
    ``(n,)``."""
    separator_nll: float = 0.0
    """What the separators between words cost in nats, which models over words do not predict; 0 for
    other tokens."""
    share: float = 1.0
    """The share of its split that this text is, in characters."""

    def add_spelling_cost(self, nll: Nll) -> Nll:
        """Return the surprisals of the scored tokens with the cost of spelling the unknown ones.

        Raises DataError if the surprisals belong to another text.
        """
        if len(nll) != len(self.spelling):
            raise DataError(
                f"{len(nll):,} surprisals for a text of {len(self.spelling):,} scored tokens: "
                "score again"
            )
        return nll + self.spelling

    @cached_property
    def ids(self) -> Ids:
        """The first token and the scored tokens; shape ``(n + 1,)``."""
        return np.concatenate([self.input_ids[:1], self.input_ids[self.is_scored]])

    def scored_nll(self, token_nll: Callable[[Ids], Nll]) -> Nll:
        """Return the surprisals of the scored tokens; ``token_nll`` returns those of tokens 2 to N
        of any N tokens."""
        return token_nll(self.input_ids)[self.is_scored[1:]]

    def bits_per_character(self, nll: Nll) -> float:
        """Return what the text costs under a model, with the costs of unknown tokens and of
        separators; infinity if a token has no probability. Raises DataError as above."""
        total = float(self.add_spelling_cost(nll).sum()) + self.separator_nll
        return bits_per_character(total, max(self.num_chars, 1))

    @property
    def num_blocks(self) -> int:
        """The number of blocks that the text is cut into, fewer for a short text."""
        return min(NUM_BLOCKS, self.num_chars // MIN_BLOCK_CHARS)

    def block_bits(self, nll: Nll, num_blocks: int) -> NDArray[np.float64]:
        """Return bits per character on each of some blocks of equally many characters; shape
        ``(num_blocks,)``.

        The bits of a token are spread over its characters, so blocks begin at the same characters
        for all kinds of tokens. Separators between words are shared equally by the words. Raises
        DataError as above.
        """
        number = max(len(nll), 1)
        ends = np.cumsum(self.lengths + (self.num_chars - self.lengths.sum()) / number)
        bits = np.cumsum(self.add_spelling_cost(nll) + self.separator_nll / number) / math.log(2)
        cuts = np.linspace(0, ends[-1], num_blocks + 1)
        return np.asarray(
            np.diff(np.interp(cuts, [0, *ends], [0, *bits])) * num_blocks / self.num_chars
        )


Streams = dict[str, Stream]
"""Split -> its scored text."""


def measure(nll: Nll, text: Stream) -> dict[str, Any]:
    """Return the figures that sum up the surprisals of a text.

    Perplexity and nats are per token of the model's own kind. Bits per character add the costs of
    spelling unknown tokens and of separators between words, and divide by the scored characters, so
    those of all kinds of models are on one scale. ``scored_share`` is the share of its split that
    the text is. Infinite values are None, with a reason. Raises DataError if the surprisals belong
    to another text.
    """
    total, number = float(nll.sum()), max(len(nll), 1)
    values = {
        "nats_per_token": total / number,
        "perplexity": perplexity(total, number),
        "bits_per_character": text.bits_per_character(nll),
    }
    metrics: dict[str, Any] = {
        name: value if math.isfinite(value) else None for name, value in values.items()
    }
    if None in metrics.values():
        impossible, invalid = int(np.isinf(nll).sum()), int(np.isnan(nll).sum())
        average = f"{values['nats_per_token']:.0f} nats per token"
        metrics["reason"] = f"{impossible} tokens have probability 0, {invalid} none; {average}"
    unknown_share = int(np.count_nonzero(text.spelling)) / number
    return metrics | {
        "tokens": len(nll),
        "unknown_share": unknown_share,
        "scored_share": text.share,
    }


def chars_up_to_first(vocab: Vocab, text: str, first: str) -> int:
    """Return how many characters a text has up to and including its first token, with lines
    joined."""
    joined = text.replace("\n", vocab.line_separator)
    num_blanks = 0 if vocab.token_kind.is_lossless else len(joined) - len(joined.lstrip(BLANKS))
    return num_blanks + vocab.token_kind.length(first)
