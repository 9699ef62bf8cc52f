"""Texts of users as tokens: a context, which is only read, and the text after it, which is scored.

Both are cleaned like the corpus, and a line end is a space for models that know no line ends. A
text without a context is read as if it followed a separator.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.progress import count_noun
from seqlm.core.text import LINE_END, LINE_ENDS, SPACE, TAB
from seqlm.models.inputs import Space
from seqlm.models.scored_text import Ids, Stream
from seqlm.models.spelling import unknown_costs
from seqlm.preprocess.cleaning import Letters, clean_text, decoding_warnings
from seqlm.vocab.separators import BLANKS, Separators, count_separators
from seqlm.vocab.vocabulary import Vocab

Indices = NDArray[np.int64]
_NON_LETTER = re.compile(r"[^A-Za-z\s]")
_LINE_ENDS = re.compile("\n+")


@dataclass(kw_only=True)
class EncodedText(Stream):
    """A text as tokens of a model, after a context that is only read."""

    vocab: Vocab
    text: str
    """The text of the scored tokens, cleaned."""
    tokens: Sequence[str]
    """The scored ones."""

    @classmethod
    def from_tokens(
        cls,
        vocab: Vocab,
        text: str,
        tokens: Sequence[str],
        ids: Ids,
        is_scored: NDArray[np.bool_],
        *,
        lengths: Indices,
        num_chars: int,
        separator_nll: float,
    ) -> Self:
        """A text, given all ``tokens`` of it and its context, and the lengths of all of them."""
        scored = list(compress(tokens, is_scored.tolist()))
        return cls(
            input_ids=ids,
            is_scored=is_scored,
            lengths=lengths[is_scored],
            num_chars=num_chars,
            spelling=unknown_costs(vocab, scored, ids[is_scored]),
            separator_nll=separator_nll,
            vocab=vocab,
            text=text,
            tokens=scored,
        )

    @property
    def nonblank_chars(self) -> Indices:
        """The number of non-blank characters in each scored token."""
        if not self.vocab.token_kind.is_lossless:
            return self.lengths
        joined = self.text.replace("\n", self.vocab.line_separator)
        codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
        is_nonblank = (codes != LINE_END) & (codes != SPACE) & (codes != TAB)
        num_before = np.append(0, np.cumsum(is_nonblank))
        ends = np.cumsum(self.lengths)
        return np.asarray(num_before[ends] - num_before[ends - self.lengths])


def encode(vocab: Vocab, context: str, text: str) -> EncodedText:
    """Tokenize ``text``, preceded by an unscored ``context``; both are clean."""
    kind, whole = vocab.token_kind, context + text
    tokens = vocab.tokenize(whole)
    lengths = np.ones(len(tokens), np.int64) if kind.is_character else vocab.lengths(tokens)
    if kind.is_lossless:
        is_scored = np.cumsum(lengths) > len(context)
        # A subword may begin with the last blank of the context.
        num_chars, separator_nll = int(lengths[is_scored].sum()), 0.0
        text = whole[len(whole) - num_chars :]
    else:
        is_scored = np.arange(len(tokens)) >= len(vocab.tokenize(context))
        num_chars = len(text)
        shape = word_shape(context, text)
        separator_nll = nll_of_shapes((shape,), vocab.line_separator, vocab.separators)
    return EncodedText.from_tokens(
        vocab,
        text,
        tokens,
        vocab.encode(tokens),
        is_scored,
        lengths=lengths,
        num_chars=num_chars,
        separator_nll=separator_nll,
    )


def word_shape(context: str, text: str) -> str:
    """Return a text with one letter in place of each word, after the separator that ends its
    context, which belongs to the text."""
    lines = f"{context[-1:]}{text}".split("\n")
    return "\n".join([" ".join(["x" * bool(word) for word in line.split(" ")]) for line in lines])


def nll_of_shapes(
    shapes: tuple[str, ...], line_separator: str, model: Separators | None = None
) -> float:
    """Return what :meth:`Separators.nll` does for texts whose words are replaced by one letter
    each."""
    counted, own_nll = _count_of_shapes(shapes, line_separator)
    return counted.nll(model) if model else own_nll


@lru_cache(1000)  # sentences share a few shapes
def _count_of_shapes(shapes: tuple[str, ...], line_separator: str) -> tuple[Separators, float]:
    counted = count_separators(shapes, line_separator)
    return counted, counted.nll(None)


def default_context(vocab: Vocab) -> str:
    """Return what is read before a text without a context: a separator; two for subwords, of which
    the second belongs to the first subword."""
    if vocab.token_kind.is_character:
        return vocab.blank
    return "  " if vocab.token_kind.is_lossless else ""


def _clean(vocab: Vocab, text: str) -> str:
    """Return a text cleaned like the corpus. A line end is a space, unless the model knows line
    ends.

    If it reads the lines of its corpus joined by nothing, several line ends are one space, and the
    last ones are nothing.
    """
    text, separator = clean_text(text, vocab.normalise), vocab.line_separator
    if "\n" in vocab or separator == "\n" or "\n" not in text:
        return text
    blank = vocab.blank if vocab.token_kind.is_character else " "
    return text.replace("\n", blank) if separator else _LINE_ENDS.sub(blank, text.rstrip("\n"))


def clean_prefix(vocab: Vocab, prefix: str) -> str:
    """Return a text that is continued, cleaned like the corpus; an empty one is read as if it
    followed a separator.

    Raises DataError if cleaning leaves nothing of the text.
    """
    cleaned = clean_context(vocab, prefix)
    if prefix.strip() and not cleaned:
        noun = vocab.token_kind.noun
        raise DataError(f"the prefix {prefix!r} contains no {noun}: pass at least one")
    return cleaned or default_context(vocab)[:1]


def clean_context(vocab: Vocab, context: str) -> str:
    """Return a text that another one follows, cleaned like the corpus, with the blanks at its
    end."""
    if not context[-1:].isspace():
        return _clean(vocab, context)
    return _clean(vocab, f"{context}x")[:-1]  # blanks before a letter are kept


def clean_after_context(
    vocab: Vocab, text: str, context: str, space: Space = "before"
) -> tuple[str, str]:
    """Return a context and the text after it, cleaned like the corpus.

    Blanks at the end of the context, and at the beginning of a text without a context, are only
    read. If neither has a blank where they meet, one is added. It belongs to the text if ``space``
    is before.
    """
    before = context and clean_context(vocab, context)
    if not before:
        return _after_separator(vocab, _clean(vocab, text))
    if before[-1] in BLANKS:
        text = _clean(vocab, text)
    else:
        between = "" if text.startswith((" ", *LINE_ENDS)) else " "
        # Blanks after a letter are kept.
        text = _clean(vocab, f"x{between}{text}")[1:]
    blanks, without_blanks = _split_blanks(text)
    if space == "after" or not without_blanks:
        before, text = before + blanks, without_blanks
    return _after_default(vocab, before), text


def _after_separator(vocab: Vocab, text: str) -> tuple[str, str]:
    """Return what is read before a clean text without a context, and the text."""
    kind, (blanks, without_blanks) = vocab.token_kind, _split_blanks(text)
    if not (kind.is_lossless and without_blanks):
        return default_context(vocab), text
    before = _after_default(vocab, blanks)
    if before.endswith(" ") and not kind.is_character:  # a subword includes the space before it
        return before[:-1], f" {without_blanks}"
    return before, without_blanks


def _after_default(vocab: Vocab, context: str) -> str:
    """Return a context after the default one, unless it begins with a separator itself."""
    blanks, _ = _split_blanks(context)
    return context if "\n" in blanks else default_context(vocab)[len(blanks) :] + context


def _split_blanks(text: str) -> tuple[str, str]:
    """Return the blanks that a text begins with, and the rest."""
    rest = text.lstrip(BLANKS)
    return text[: len(text) - len(rest)], rest


def cleaning_remarks(text: str, normalise: str) -> list[str]:
    """Return remarks on what cleaning changes in a text."""
    if normalise != "letters":
        return []
    replaced = _NON_LETTER.findall(unicodedata.normalize("NFC", text))
    if not replaced:
        return []
    number = count_noun(len(replaced), "character")
    remark = f"cleaned like the corpus, by preprocess.normalise: spaces replace {number} "
    warnings = decoding_warnings(Letters.of(text.encode()), normalise)
    return [f"{remark}other than A to Z", *warnings]
