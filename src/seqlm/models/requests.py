"""What a caller of ``surprisals`` asks for: texts, the words in them, and the groups that the words belong to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from seqlm.core.cells import is_missing
from seqlm.core.errors import DataError, ParamsError
from seqlm.models.units import Spans, Units, spans_of_given_words

if TYPE_CHECKING:
    import pandas as pd

_SURROGATE = re.compile("[\ud800-\udfff]")
Texts = list[str] | tuple[str, ...]
"""Several texts; every other iterable of strings, such as a column of a table, does too."""


@dataclass(frozen=True)
class Request:
    """Texts of which surprisals are wanted."""

    texts: list[str]
    words: list[Spans] | None
    """The places of the given words in each text."""
    labels: list[Any] | None
    """The value of the column ``group`` for each text; None: there is one text and no such column."""
    order: list[int] | None = None
    """For each given word its row among the rows of all texts, if groups were given."""
    index: Any = None
    """The index of the table that the given words are a column of."""

    def table(self, parts: Sequence[Units]) -> "pd.DataFrame":
        """Return the units of all texts as one table, with rows in the order in which words were given."""
        import pandas as pd

        columns: dict[str, Any] = {} if self.labels is None else {"group": []}
        for label, units in zip(self.labels or (), parts, strict=False):
            columns["group"] += [label] * len(units.text)
        columns["position"] = [place for units in parts for place in range(len(units.text))]
        for name in Units._fields:
            found = [getattr(units, name) for units in parts]
            is_list = name in ("text", "original", "reason")
            columns[name] = list(chain(*found)) if is_list else np.concatenate(found) if found else []
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
        return Request(texts, None, list(range(len(texts))))
    given, index = _items(words, "words must be a list of words"), getattr(words, "index", None)
    index = None if callable(index) else index  # a list has a method of this name
    if groups is not None:
        if text is not None:
            raise ParamsError("with groups, give words and no text: the text of a group is its words")
        return _grouped(strings(given, "words"), _items(groups, "groups must be a list of labels"), index)
    if not any(map(are_several, given)):
        own = strings(given, "words")
        return Request(*_located([None if text is None else require_text(text, "the text")], [own]), None, index=index)
    lists = [strings(each, f"words[{number}]", "list of strings") for number, each in enumerate(given)]
    texts_or_none = [None] * len(lists) if text is None else strings(text, "the text", "list of strings")
    if len(texts_or_none) != len(lists):
        raise ParamsError(f"there are {len(texts_or_none)} texts, but words of {len(lists)}: give as many")
    return Request(*_located(texts_or_none, lists), list(range(len(lists))))


def are_several(value: object) -> bool:
    """Return whether a value is several things, and not one text or number."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) == 1


def require_text(value: object, what: str) -> str:
    """Return a text. Raises ParamsError if it is none, and DataError for half a character, which no file can hold."""
    if not isinstance(value, str):
        raise ParamsError(f"{what} must be a string, not {type(value).__name__}")
    if found := _SURROGATE.search(value):
        raise DataError(f"{what} has half a character, {found[0]!r}, at position {found.start()}: remove or replace it")
    return value


def strings(value: object, what: str, expected: str = "string") -> list[str]:
    """Return some strings as a list. Raises ParamsError for anything else; one thing must be what is ``expected``."""
    found = _items(value, f"{what} must be a {expected}")
    for index, each in enumerate(found):
        if isinstance(each, str):
            continue
        if is_missing(each):
            advice = 'give "" for no word, and read tables with keep_default_na=False, so that "NA" stays a word'
            raise ParamsError(f"{what}[{index}] must be a string, but it is missing: {advice}")
        raise ParamsError(f"{what}[{index}] must be a string, not {_kind(each)}")
    return found


def _items(value: Any, complaint: str) -> list[Any]:
    if not are_several(value):
        raise ParamsError(f"{complaint}, not {_kind(value)}")
    return list(value)


def _kind(value: object) -> str:
    return type(value).__name__


def _located(texts: Sequence[str | None], words: Sequence[list[str]]) -> tuple[list[str], list[Spans]]:
    """Return each text, or if it is None its words with spaces between them, and the places of the words."""
    found = [" ".join(own) if text is None else text for text, own in zip(texts, words, strict=True)]
    return found, [
        _between_spaces(own) if text is None else spans_of_given_words(text, own)
        for text, own in zip(texts, words, strict=True)
    ]


def _between_spaces(words: Sequence[str]) -> Spans:
    ends = [end - 1 for end in accumulate(len(word) + 1 for word in words)]
    return [(end - len(word), end) for word, end in zip(words, ends, strict=True)]


def _grouped(words: list[str], groups: list[Any], index: Any) -> Request:
    """Return the request of words that belong to groups: those of one group, in their order, are a text."""
    if len(groups) != len(words):
        raise ParamsError(f"there are {len(words)} words, but {len(groups)} groups: give one for each word")
    members: dict[Any, list[int]] = {}
    for place, label in enumerate(groups):
        if is_missing(label):
            raise ParamsError(f"groups[{place}] is missing: give a label for each word")
        try:
            members.setdefault(label, []).append(place)
        except TypeError as error:  # a list, for example
            raise ParamsError(f"groups[{place}] must be a number or a string, not {_kind(label)}") from error
    places = [place for found in members.values() for place in found]
    texts, spans = _located([None] * len(members), [[words[place] for place in found] for found in members.values()])
    return Request(texts, spans, list(members), sorted(range(len(places)), key=places.__getitem__), index)
