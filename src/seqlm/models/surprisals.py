"""The surprisals of a text: of its tokens, and of its words, as a reader saw them.

Each word is cleaned alone, so it keeps its place in the list whatever cleaning makes of it: a word
that cleaning divides is one row, and so is a word of which nothing is left. A token belongs to the
word of its first character that is not a blank. A blank belongs to the word before or after it,
which matters when surprisals are compared with reading times (Pimentel and Meister 2024, Oh and
Schuler 2024).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from seqlm.core.cells import is_missing
from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll
from seqlm.core.progress import count_noun
from seqlm.core.text import LINE_END, SPACE, TAB
from seqlm.models.scored_text import Stream, chars_up_to_first, measure
from seqlm.models.spelling import unknown_costs
from seqlm.preprocess.cleaning import clean_text
from seqlm.vocab.separators import BLANKS
from seqlm.vocab.vocabulary import Vocab

if TYPE_CHECKING:
    import pandas as pd

By = Literal["token", "word"]
"""The unit of a row of a table of surprisals."""
Space = Literal["before", "after"]
"""Where a blank belongs that is between two words: to the one that it precedes, or to the one that
it follows."""
Texts = list[str] | tuple[str, ...]
"""Several texts; every other iterable of strings, such as a column of a table, does too."""
Indices = NDArray[np.int64]
REMOVED = "removed by cleaning"
NO_BEGINNING = "not scored: the model has no distribution of a first token"
_CONTINUES = "part of the token before"
_WORD = {"letters": re.compile(r"\S+"), "none": re.compile(r"[^ \t\r\n]+")}
"""A word of a text that is not clean: without cleaning only spaces, tabs and line ends separate
words."""
_BLANKS = re.compile("[ \n\t]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Score(NamedTuple):
    """How well a model predicts a text: the figures of the main table."""

    tokens: int
    """Scored tokens: all, unless the model has no distribution of a first one."""
    nll: float
    """-log p of them all in nats, without the costs of spelling unknown tokens and of separators
    between words."""
    bits_per_character: float
    """With these costs, so that models over characters, words and subwords are on one scale."""
    perplexity: float
    """Per token of the model's own kind."""
    unknown_share: float
    """Share of the scored tokens that the vocabulary lacks."""
    remarks: tuple[str, ...] = ()
    """What cleaning changed in the text, in sentences; empty if that is little."""


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


@dataclass(frozen=True, kw_only=True)
class EncodedText(Stream):
    """A text as tokens of a model, after a context that is only read."""

    vocab: Vocab
    text: str
    """The text without the context, cleaned, with its line ends."""
    tokens: Sequence[str]
    """The scored ones."""

    @classmethod
    def of(
        cls,
        vocab: Vocab,
        text: str,
        tokens: Sequence[str],
        is_scored: NDArray[np.bool_],
        lengths: Indices,
        num_chars: int,
        separator_nll: float,
    ) -> Self:
        """Return a text, given all ``tokens`` that are read, and the lengths of all of them."""
        ids, scored = vocab.encode(tokens), list(compress(tokens, is_scored.tolist()))
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
    def ink(self) -> Indices:
        """The number of non-blank characters in each scored token."""
        if not self.vocab.token_kind.is_lossless:
            return self.lengths
        codes = np.frombuffer(
            self.text.replace("\n", self.vocab.line_separator).encode("utf-32-le"), np.uint32
        )
        before = np.append(0, np.cumsum((codes != LINE_END) & (codes != SPACE) & (codes != TAB)))
        ends = np.cumsum(self.lengths)
        return np.asarray(before[ends] - before[ends - self.lengths])


@dataclass(frozen=True)
class TextSurprisals:
    """A text with the surprisals of its tokens."""

    encoded: EncodedText
    nll: Nll
    """-log p of the scored tokens in nats, without the cost of spelling unknown ones; nan for a
    first token after nothing under a model that has no distribution of it."""

    @property
    def _has_no_first(self) -> bool:
        return any(map(math.isnan, self.nll[:1].tolist()))

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What :func:`~seqlm.models.scored_text.measure` returns."""
        text = self.encoded
        if not self._has_no_first:
            return measure(self.nll, text)
        num_chars = text.num_chars - chars_up_to_first(text.vocab, text.text, text.tokens[0])
        return measure(self.nll[1:], replace(text, num_chars=num_chars, spelling=text.spelling[1:]))

    def score(self, which: str, remarks: Sequence[str] = ()) -> Score:
        """Return the figures that sum up the surprisals, with remarks on the cleaning of the text.

        Raises DataError, which calls the text ``which``, if it has no scored token.
        """
        found = self.metrics
        if not found["tokens"]:
            number = count_noun(len(self.nll), self.encoded.vocab.token_kind.noun)
            raise DataError(f"{which} has only {number} that can be scored: use a longer text")
        bits, perplexity = (
            math.inf if found[name] is None else found[name]
            for name in ("bits_per_character", "perplexity")
        )
        nll = float(self.nll[self._has_no_first :].sum())
        return Score(found["tokens"], nll, bits, perplexity, found["unknown_share"], tuple(remarks))

    @property
    def bits(self) -> NDArray[np.float64]:
        """The bits of each scored token, with the cost of spelling an unknown one."""
        return (self.nll + self.encoded.spelling) / math.log(2)

    def token_rows(self) -> Rows:
        """Return a row for each scored token."""
        reasons = [NO_BEGINNING if missing else "" for missing in np.isnan(self.nll)]
        return Rows(list(self.encoded.tokens), self.bits, self.encoded.spelling > 0, reasons)

    def word_rows(self, words: Sequence[str], space: Space) -> Rows:
        """Return a row for each word, as it was given.

        Raises ParamsError if the text is not made of these words, and if ``space`` is not a choice
        for the tokens.
        """
        encoded, kind = self.encoded, self.encoded.vocab.token_kind
        if space == "after" and kind.is_lossless and not kind.is_character:
            raise ParamsError(
                f"the {kind.noun}s of this model include the space before a word: set space to "
                "before"
            )
        cleaned = clean_words(words, encoded.vocab.normalise)
        ends = np.cumsum(_require_words(encoded.text, cleaned))
        # A token begins at one of the characters that are no blanks. One without any belongs to the
        # next such character or to the one before, of which it may be a byte.
        ink = encoded.ink
        is_byte = (encoded.lengths == 0) & kind.is_lossless
        places = np.cumsum(ink) - ink - ((ink == 0) & (is_byte | (space == "after")))
        word_of = np.searchsorted(
            ends, np.clip(places, 0, max(int(ink.sum()) - 1, 0)), side="right"
        )
        number, bits = len(words), self.bits
        sums = np.bincount(word_of, bits, number)[:number].astype(np.float64)
        has_tokens = np.bincount(word_of, minlength=number)[:number] > 0
        sums[~has_tokens] = math.nan
        reasons = [
            "" if has else _CONTINUES if word else REMOVED
            for has, word in zip(has_tokens, cleaned, strict=True)
        ]
        if self._has_no_first:
            first = int(word_of[0])
            sums[first], reasons[first] = math.nan, NO_BEGINNING
        return Rows(
            cleaned, sums, np.bincount(word_of, encoded.spelling, number)[:number] > 0, reasons
        )


def split_words(text: str, normalise: str) -> list[str]:
    """Return what white space separates in a text that is not clean."""
    return _WORD[normalise].findall(text)


def clean_words(words: Sequence[str], normalise: str) -> list[str]:
    """Return each word cleaned alone; "" if nothing is left of it."""
    lines = "\n".join([" ".join(re.split(r"[\r\n]", word)) for word in words])
    cleaned = [line.strip(BLANKS) for line in clean_text(lines, normalise).split("\n")]
    return [*cleaned, *[""] * (len(words) - len(cleaned))][: len(words)]


def _require_words(text: str, words: Sequence[str]) -> list[int]:
    """Return the number of characters in each clean word that are no blanks.

    Raises ParamsError if the text does not consist of these words.
    """
    found, end, inks = _BLANKS.sub("", text), 0, [_BLANKS.sub("", word) for word in words]
    for index, ink in enumerate(inks):
        if not found.startswith(ink, end):
            shown = found[end : end + len(ink)]
            raise ParamsError(
                f"words[{index}] = {words[index]!r}: the text has {shown!r} there: give its words"
            )
        end += len(ink)
    if end < len(found):
        raise ParamsError(
            f"the text continues with {found[end : end + 20]!r} after the last word: give all its "
            "words"
        )
    return [len(ink) for ink in inks]


@dataclass(frozen=True)
class Request:
    """What a caller of ``surprisals`` asks for."""

    texts: list[str]
    words: list[list[str]] | None
    """The given words of each text."""
    labels: list[Any] | None
    """The value of the column ``group`` for each text; None: there is one text and no such
    column."""
    order: Indices | None = None
    """For each given word its row among the rows of all texts, if groups were given."""
    index: Any = None
    """The index of the table that the given words are a column of."""

    def table(self, parts: Sequence[Rows]) -> "pd.DataFrame":
        """Return the rows of all texts as one table, in the order in which words were given."""
        import pandas as pd

        columns: dict[str, Any] = {}
        if self.labels is not None:
            columns["group"] = [
                label for label, rows in zip(self.labels, parts, strict=True) for _ in rows.text
            ]
        columns["position"] = [place for rows in parts for place in range(len(rows.text))]
        for name in Rows._fields:
            columns[name] = list(chain.from_iterable(getattr(rows, name) for rows in parts))
        table = pd.DataFrame(columns)
        if self.order is not None:
            table = table.iloc[self.order].reset_index(drop=True)
        return table if self.index is None else table.set_index(self.index)


def read_request(text: object, words: object, groups: object) -> Request:
    """Return what is asked for. Raises ParamsError for arguments that make no sense together."""
    if words is None:
        if groups is not None:
            raise ParamsError("groups are those of words: give words too")
        if isinstance(text, str):
            return Request([text], None, None)
        texts = strings(text, "the text")
        if (
            _index_of(text) is not None
            and len(texts) > 1
            and all(len(each.split()) == 1 for each in texts)
        ):
            raise ParamsError("the text is a column of single words: give it as words=")
        return Request(texts, None, list(range(len(texts))))
    given = _items(words, "words must be a list of words")
    if groups is not None:
        if text is not None:
            raise ParamsError(
                "with groups, give words and no text: the text of a group is its words"
            )
        groups = _items(groups, "groups must be a list of labels")
        return _grouped(strings(given, "words"), groups, _index_of(words))
    if not any(map(is_collection, given)):
        own = strings(given, "words")
        texts = [" ".join(own) if text is None else require_text(text, "the text")]
        return Request(texts, [own], None, index=_index_of(words))
    lists = [
        strings(each, f"words[{number}]", "list of strings") for number, each in enumerate(given)
    ]
    texts = (
        [" ".join(own) for own in lists]
        if text is None
        else strings(text, "the text", "list of strings")
    )
    _require_as_many("text", texts, "list", lists)
    return Request(texts, lists, list(range(len(lists))))


def _index_of(value: Any) -> Any:
    """Return the index of a column of a table; None for other values."""
    index = getattr(value, "index", None)
    return None if callable(index) else index  # a list has a method of this name


def _grouped(words: list[str], groups: list[Any], index: Any) -> Request:
    """Return the request of words that belong to groups: those of one group, in their order, are a
    text."""
    _require_as_many("word", words, "group", groups)
    places: dict[Any, list[int]] = {}
    for place, label in enumerate(groups):
        if is_missing(label):
            raise ParamsError(f"groups[{place}] is missing: give a label for each word")
        try:
            places.setdefault(label, []).append(place)
        except TypeError as error:  # a list, for example
            raise ParamsError("a label in groups must be a number or a string") from error
    lists = [[words[place] for place in of_group] for of_group in places.values()]
    order = np.argsort(np.array([*chain.from_iterable(places.values())], np.int64))
    return Request([" ".join(own) for own in lists], lists, list(places), order, index)


def is_collection(value: object) -> bool:
    """Return whether a value is several things, and not one text or number."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes | Mapping)
        and getattr(value, "ndim", 1) == 1
    )


def require_text(value: object, what: str) -> str:
    """Return a text. Raises ParamsError if it is not one, and DataError for half a character: no
    file can hold that."""
    if not isinstance(value, str):
        raise ParamsError(f"{what} must be a string, not {type(value).__name__}")
    if found := _SURROGATE.search(value):
        raise DataError(
            f"{what} has half a character, {found[0]!r}, at position {found.start()}: remove or "
            "replace it"
        )
    return value


def strings(value: object, what: str, expected: str = "string") -> list[str]:
    """Return some strings as a list. Raises ParamsError for anything else; one thing must be what
    is ``expected``."""
    found = _items(value, f"{what} must be a {expected}")
    for index, each in enumerate(found):
        if isinstance(each, str):
            continue
        if is_missing(each):
            advice = (
                'give "" for no word, and read tables with keep_default_na=False, '
                'so that "NA" stays a word'
            )
            raise ParamsError(f"{what}[{index}] must be a string, but it is missing: {advice}")
        raise ParamsError(f"{what}[{index}] must be a string, not {type(each).__name__}")
    return found


def contexts(context: object, texts: Sequence[str]) -> Sequence[object]:
    """Return the context of each of some texts. Raises ParamsError if there are more or fewer."""
    if not is_collection(context):
        return [context] * len(texts)
    found = strings(context, "the context")
    _require_as_many("text", texts, "context", found)
    return found


def _require_as_many(noun: str, items: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    if len(items) != len(others):
        raise ParamsError(
            f"{count_noun(len(items), noun)}, but {count_noun(len(others), other)}: give one for "
            "each"
        )


def _items(value: Any, complaint: str) -> list[Any]:
    if not is_collection(value):
        raise ParamsError(f"{complaint}, not {type(value).__name__}")
    return list(value)
