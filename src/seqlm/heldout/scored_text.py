"""A text that models are scored on, as tokens of one kind.

Tokens 2 to N are scored, each given all tokens before it. The first token costs nothing, and neither it nor the text
before it counts as scored characters. A long split is scored in passages. Before each passage after the first, a model
reads some tokens without being scored on them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.metrics import Nll

Ids = NDArray[np.integer]

NUM_BLOCKS = 50
"""Parts that a scored text is cut into; a text that is scored in passages has as many of them."""
MIN_BLOCK_CHARS = 20


@dataclass(frozen=True, kw_only=True)
class ScoredText:
    """A scored text of N tokens, without the tokens: all that is needed to sum up their surprisals."""

    scored_chars: int
    """Characters after the first token, with lines joined. Bits per character divide by this number."""
    unknown_costs: Nll
    """What it costs to spell each token that the vocabulary lacks, 0 for the others; shape ``(N,)``."""
    ends: NDArray[np.int64]
    """The number of characters in all tokens up to and including each token; shape ``(N,)``."""
    unknown_share: float
    """Share of the scored tokens that the vocabulary lacks."""
    separator_nll: float = 0.0
    """What the separators between words would cost, which models over words need not predict; 0 for other tokens."""
    share: float = 1.0
    """The share of its split that this text is, in characters."""

    @property
    def num_scored(self) -> int:
        """The number of scored tokens: all but the first."""
        return max(len(self.ends) - 1, 0)

    def with_unknown_cost(self, nll: Nll) -> Nll:
        """Return the surprisals of tokens 2 to N with the cost of spelling the unknown ones.

        Raises DataError if the surprisals belong to another text.
        """
        if len(nll) != self.num_scored:
            raise DataError(f"{len(nll):,} surprisals for a text of {self.num_scored:,} scored tokens: score again")
        return nll + self.unknown_costs[1:]

    @property
    def num_blocks(self) -> int:
        """The number of blocks that the text is cut into, fewer for a short text."""
        return min(NUM_BLOCKS, self.scored_chars // MIN_BLOCK_CHARS)

    def block_bits(self, nll: Nll, num_blocks: int) -> NDArray[np.float64]:
        """Return bits per character on each of some blocks of equally many characters; shape ``(num_blocks,)``.

        The bits of a token are spread over its characters, so blocks begin at the same characters for all kinds of
        tokens. Separators between words are shared equally by the words. Raises DataError as above.
        """
        lengths = np.diff(self.ends)
        ends = np.cumsum(lengths + (self.scored_chars - lengths.sum()) / max(self.num_scored, 1))
        bits = np.cumsum(self.with_unknown_cost(nll)) / math.log(2)
        cuts = np.linspace(0, ends[-1], num_blocks + 1)
        return np.asarray(np.diff(np.interp(cuts, [0, *ends], [0, *bits])) * num_blocks / self.scored_chars)


@dataclass(frozen=True, kw_only=True)
class Stream(ScoredText):
    """A scored text with its tokens."""

    input_ids: Ids
    """What a model reads: the scored tokens and, before each passage after the first, its warm-up."""
    is_scored: NDArray[np.bool_]
    """For each token of ``input_ids``, whether it is scored."""

    @cached_property
    def ids(self) -> Ids:
        """The scored tokens; shape ``(N,)``."""
        return self.input_ids[self.is_scored]

    def nll(self, score: Callable[[Ids], Nll]) -> Nll:
        """Return the surprisals of tokens 2 to N; ``score`` gives those of any tokens that are read as one text."""
        return score(self.input_ids)[self.is_scored[1:]]

    def beginning(self, num_tokens: int) -> "Stream":
        """Return the first tokens, to be read as one text; the stream itself if it has no more."""
        if num_tokens >= len(self.ids):
            return self
        # Exact if every token is one character; otherwise an estimate.
        chars = round(self.scored_chars * (num_tokens - 1) / (len(self.ids) - 1))
        return stream_of(self.ids[:num_tokens], self.unknown_costs[:num_tokens], self.ends[:num_tokens], chars)

    def since(self, first: int, scored_chars: int) -> "Stream":
        """Return the scored tokens from one of them on; those before it are only read.

        ``scored_chars``: the number of characters after this token.
        """
        is_scored = self.is_scored.copy()
        is_scored[: np.flatnonzero(is_scored)[first]] = False
        return Stream(
            input_ids=self.input_ids, is_scored=is_scored, scored_chars=scored_chars,
            unknown_costs=self.unknown_costs[first:], ends=self.ends[first:],
            unknown_share=unknown_share(self.ids[first:]),
        )  # fmt: skip


Streams = dict[str, Stream]
"""Split -> its scored text."""


def stream_of(ids: Ids, unknown_costs: Nll, ends: NDArray[np.int64], scored_chars: int) -> Stream:
    """Return tokens that are read as one text as a stream."""
    return Stream(
        input_ids=ids, is_scored=np.ones(len(ids), bool), scored_chars=scored_chars, unknown_costs=unknown_costs,
        ends=ends, unknown_share=unknown_share(ids),
    )  # fmt: skip


def unknown_share(ids: Ids) -> float:
    """Return the share of tokens 2 to N that the vocabulary lacks."""
    number = len(ids) - 1
    return (number - int(np.count_nonzero(ids[1:]))) / number if number > 0 else 0.0
