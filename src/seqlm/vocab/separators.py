"""What separates words, which models over words do not predict."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from seqlm.core.text import LINE_END, SPACE, TextSize

BLANKS = " \n"
"""The characters that separate words."""
NO_SEPARATOR = ""
"""After a word: the next word begins at once, which happens if lines are joined by nothing."""
WORD_BEGINS = ""
"""After a blank: a word begins."""


_Share = Annotated[float, Field(gt=0)]


class Separators(NamedTuple):
    """A number for each separator after a word and after a blank: how often a text has it, or its
    probability.

    A separator is one blank, or none (:data:`NO_SEPARATOR`, :data:`WORD_BEGINS`).
    """

    after_word: Mapping[str, _Share]
    after_blank: Mapping[str, _Share]

    def probabilities(self) -> "Separators":
        """Return the shares of the separators that were counted, with add-one smoothing."""
        return Separators(_smoothed(self.after_word), _smoothed(self.after_blank))

    def nll(self, model: "Separators | None") -> float:
        """Return the sum of the surprisals of the separators that were counted, under a model of
        them.

        Without a model, their own frequencies are used, which is too little for short texts.
        """
        pairs = zip(self, model or self.probabilities(), strict=True)
        return -math.fsum(
            n * math.log(probs[what]) for counts, probs in pairs for what, n in counts.items()
        )


def _smoothed(counts: Mapping[str, float]) -> dict[str, float]:
    total = sum(counts.values()) + len(counts)
    return {what: (count + 1) / total for what, count in counts.items()}


def count_separators(texts: Sequence[str], line_separator: str) -> Separators:
    """Return how often some texts have each separator when their lines are joined.

    The texts have their line ends; ``line_separator`` is empty, a space or a line end.
    """
    blanks = [blank for blank in BLANKS if blank == " " or blank == line_separator]
    after_word = dict.fromkeys(blanks if line_separator else [*blanks, NO_SEPARATOR], 0)
    after_blank = dict.fromkeys([*blanks, WORD_BEGINS], 0)
    for text in texts:
        # The last line end joins no lines. A tab separates words as a space does.
        lines = text.removesuffix("\n").replace("\t", " ")
        joined = lines.replace("\n", line_separator)
        values = np.frombuffer(joined.encode(), np.uint8)
        is_blank = (values == SPACE) | (values == LINE_END)
        for blank in blanks:
            is_this = values[1:] == ord(blank)
            after_blank[blank] += int(np.count_nonzero(is_this & is_blank[:-1]))
            after_word[blank] += int(np.count_nonzero(is_this & ~is_blank[:-1]))
        after_blank[WORD_BEGINS] += int(np.count_nonzero(~is_blank[1:] & is_blank[:-1]))
        if not line_separator:  # which makes one word of two
            sizes = [TextSize.of(f"{each}\n".encode()) for each in (lines, joined)]
            after_word[NO_SEPARATOR] += sizes[0].words - sizes[1].words
    return Separators(after_word, after_blank)


def estimate_separators(text: str, line_separator: str) -> Separators:
    """Return the probability of each separator in a text with its line ends."""
    return count_separators([text], line_separator).probabilities()
