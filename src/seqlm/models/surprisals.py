"""The surprisals of a text: of its tokens, and of its words, as a reader saw them.

Each word is cleaned alone, so it keeps its place in the list whatever cleaning makes of it: a word
that cleaning divides is one row, and so is a word of which nothing is left. A token belongs to the
word of its first character that is not a blank. A blank belongs to the word before or after it,
which matters when surprisals are compared with reading times (Pimentel and Meister 2024, Oh and
Schuler 2024).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll, perplexity
from seqlm.core.text import LINE_ENDS
from seqlm.models.encoding import EncodedText, Indices, cleaning_remarks
from seqlm.models.inputs import Space, SurprisalInput
from seqlm.models.scored_text import chars_up_to_first
from seqlm.preprocess.cleaning import clean_text
from seqlm.vocab.separators import BLANKS

if TYPE_CHECKING:
    import pandas as pd

HIGH_UNKNOWN_SHARE = 0.1
"""A larger share of unknown tokens is worth a remark."""
REMOVED = "removed by cleaning"
FIRST_IS_UNSCORED = "not scored: the model has no distribution of a first token"
_CONTINUES = "part of the token before"
_WORD = {"letters": re.compile(r"\S+"), "none": re.compile(f"[^ \t{LINE_ENDS}]+")}
"""A word of a text that is not clean: without cleaning only spaces, tabs and line ends separate
words."""
_LINE_END = re.compile(f"[{LINE_ENDS}]")
_BLANKS = re.compile("[ \n\t]")


class Score(NamedTuple):
    """How well a model predicts a text: the figures of the main table."""

    tokens: int
    """Scored tokens: all, unless the model has no distribution of a first one. A model from an ARPA
    file with sentence marks also scores the end of each line, which all figures include; see
    :func:`seqlm.open_arpa`."""
    nll: float
    """-log p of them all in nats, without the costs of spelling unknown tokens and of separators
    between words."""
    bits_per_character: float
    """With these costs, so that models over characters, words and subwords are on one scale."""
    perplexity: float
    """Per token of the model's own kind, with unknown tokens as ``<unk>``: comparable only between
    models with the same vocabulary."""
    perplexity_known: float
    """Without the unknown tokens, as KenLM and SRILM print it too; nan if there is no other."""
    unknown_share: float
    """Share of the scored tokens that the vocabulary lacks."""
    remarks: tuple[str, ...] = ()
    """What cleaning changed in the text, and what makes the figures misleading, in sentences."""


class Rows(NamedTuple):
    """The rows of a table of surprisals, in columns of one length."""

    text: list[str]
    """The token, or the cleaned word; empty if cleaning leaves nothing of it."""
    bits: NDArray[np.float64]
    """Surprisal in bits, with the cost of spelling unknown tokens; nan if there is none."""
    unknown: NDArray[np.bool_]
    """Whether one of its tokens is unknown."""
    reason: list[str]
    """Why bits are missing; empty for others."""


class WordAlignment(NamedTuple):
    """Which scored tokens of a text belong to which word."""

    words: list[str]
    """The cleaned words."""
    word_of_token: Indices
    """For each scored token the index of its word, or the number of words if it has none."""


@dataclass(frozen=True)
class TextSurprisals:
    """A text with the surprisals of its tokens."""

    encoded: EncodedText
    nll: Nll
    """-log p of the scored tokens in nats, without the cost of spelling unknown ones; nan for a
    first token after nothing under a model that has no distribution of it."""

    @property
    def first_is_unscored(self) -> bool:
        """Whether the model has no distribution of the first token."""
        return len(self.nll) > 0 and math.isnan(self.nll[0])

    @property
    def scored(self) -> tuple[Nll, EncodedText]:
        """The surprisals and the text, without a first token that has no distribution."""
        nll, text = self.nll, self.encoded
        if not self.first_is_unscored:
            return nll, text
        num_chars = text.num_chars - chars_up_to_first(text.vocab, text.text, text.tokens[0])
        return nll[1:], replace(text, num_chars=num_chars, spelling=text.spelling[1:])

    def score(self, which: str, original: str) -> Score:
        """Return the figures that sum up the surprisals of a text, which was ``original`` before
        cleaning.

        Raises DataError, which calls the text ``which``, if it has no scored token.
        """
        (nll, text), noun = self.scored, self.encoded.vocab.token_kind.noun
        if not len(nll):
            raise DataError(f"{which} has no {noun} that can be scored: use a longer text")
        total, remarks = float(nll.sum()), list[str]()
        share = np.count_nonzero(text.spelling) / len(nll)
        all_perplexity = perplexity_known = perplexity(total, len(nll))
        if math.isinf(total):
            token = self.encoded.tokens[int(np.isinf(self.nll).argmax())]
            remarks.append(f"perplexity is infinite, because {token!r} has probability 0")
        if share:
            known = nll[text.spelling == 0]
            perplexity_known = perplexity(known.sum(), len(known)) if len(known) else math.nan
            if share > HIGH_UNKNOWN_SHARE:
                remarks.append(
                    f"{share:.0%} of the {noun}s are unknown, which can make perplexity low: "
                    "compare bits per character"
                )
            if text.spelling.sum() > total + text.separator_nll:
                remarks.append(
                    f"most of the bits are the cost of spelling {noun}s that the model does not "
                    "know"
                )
        return Score(
            tokens=len(nll),
            nll=total,
            bits_per_character=text.bits_per_character(nll),
            perplexity=all_perplexity,
            perplexity_known=perplexity_known,
            unknown_share=share,
            remarks=(*cleaning_remarks(original, text.vocab.normalise), *remarks),
        )

    @property
    def bits(self) -> NDArray[np.float64]:
        """The bits of each scored token, with the cost of spelling an unknown one."""
        return (self.nll + self.encoded.spelling) / math.log(2)

    def token_rows(self) -> Rows:
        """Return a row for each scored token."""
        reasons = [FIRST_IS_UNSCORED if is_nan else "" for is_nan in np.isnan(self.nll)]
        return Rows(list(self.encoded.tokens), self.bits, self.encoded.spelling > 0, reasons)

    def word_rows(self, alignment: WordAlignment) -> Rows:
        """Return a row for each word."""
        words, word_of_token = alignment
        number = len(words)
        has_tokens = np.bincount(word_of_token, minlength=number)[:number] > 0
        is_unknown = np.bincount(word_of_token, self.encoded.spelling, number)[:number] > 0
        bits = np.bincount(word_of_token, self.bits, number)[:number].astype(np.float64)
        bits[~has_tokens] = math.nan
        reasons = [
            "" if has else _CONTINUES if word else REMOVED
            for has, word in zip(has_tokens, words, strict=True)
        ]
        if self.first_is_unscored:
            reasons[word_of_token[0]] = FIRST_IS_UNSCORED
        return Rows(words, bits, is_unknown, reasons)


def align_words(text: EncodedText, words: Sequence[str], space: Space) -> WordAlignment:
    """Return which tokens belong to which word, as it was given.

    Raises ParamsError if the text is not made of these words, and if ``space`` is not a choice for
    the tokens.
    """
    kind = text.vocab.token_kind
    if space == "after" and kind.is_lossless and not kind.is_character:
        noun = f"{kind.noun}s of this model"
        raise ParamsError(f"the {noun} include the space before a word: set space to before")
    cleaned = clean_words(words, text.vocab.normalise)
    # A token belongs to the word of its first nonblank character, which has this index among all of
    # them. "a bc" is a, space, b, c in characters: their indices are 0, 1, 1, 2.
    nonblank_chars = text.nonblank_chars
    ends = np.cumsum(nonblank_chars)
    first_nonblank = ends - nonblank_chars
    # A blank alone belongs to the nonblank character after it (1, above), or to that before it (0),
    # as a byte always does that continues a character. The end of a sentence belongs to no word.
    is_empty = text.lengths == 0
    continues = is_empty & (not kind.has_unknown)
    first_nonblank -= (nonblank_chars == 0) & (continues | (space == "after"))
    last = max(int(ends[-1]), 1) - 1 if len(ends) else 0
    word_ends = np.cumsum(_nonblank_lengths(text.text, cleaned))
    word_of_token = np.searchsorted(word_ends, np.clip(first_nonblank, 0, last), side="right")
    word_of_token[is_empty & ~continues] = len(cleaned)
    return WordAlignment(cleaned, word_of_token)


def split_words(text: str, normalise: str) -> list[str]:
    """Return what white space separates in a text that is not clean."""
    return _WORD[normalise].findall(text)


def clean_words(words: Sequence[str], normalise: str) -> list[str]:
    """Return each word cleaned alone; "" if nothing is left of it."""
    lines = "\n".join([_LINE_END.sub(" ", word) for word in words])
    cleaned = [line.strip(BLANKS) for line in clean_text(lines, normalise).split("\n")]
    return [*cleaned, *[""] * (len(words) - len(cleaned))][: len(words)]


def _nonblank_lengths(text: str, words: Sequence[str]) -> list[int]:
    """Return the number of nonblank characters in each clean word.

    Raises ParamsError if the text does not consist of these words.
    """
    nonblank_text, end = _BLANKS.sub("", text), 0
    nonblank_words = [_BLANKS.sub("", word) for word in words]
    for number, word in enumerate(nonblank_words):
        if not nonblank_text.startswith(word, end):
            there = nonblank_text[end : end + len(word)]
            problem = f"the text has {there!r} there: pass its words"
            raise ParamsError(f"words[{number}] = {words[number]!r}: {problem}")
        end += len(word)
    if end < len(nonblank_text):
        rest = nonblank_text[end : end + 20]
        raise ParamsError(
            f"the text continues with {rest!r} after the last word: pass all of its words"
        )
    return [len(word) for word in nonblank_words]


def surprisal_table(inputs: SurprisalInput, rows_of_texts: Sequence[Rows]) -> "pd.DataFrame":
    """Return the rows of all texts as one table, in the order in which words were given."""
    import pandas as pd

    columns: dict[str, Any] = {}
    lengths = [len(rows.text) for rows in rows_of_texts]
    if inputs.labels is not None:
        labels = zip(inputs.labels, lengths, strict=True)
        columns["group"] = [label for label, length in labels for _ in range(length)]
    columns["position"] = list(chain.from_iterable(map(range, lengths)))
    for name in Rows._fields:
        columns[name] = list(chain.from_iterable(getattr(rows, name) for rows in rows_of_texts))
    table = pd.DataFrame(columns)
    if inputs.row_of_word is not None:
        table = table.iloc[inputs.row_of_word].reset_index(drop=True)
    return table if inputs.index is None else table.set_index(inputs.index)
