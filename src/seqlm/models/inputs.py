"""What users give to a model: texts, words, groups and contexts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.progress import count_noun

By = Literal["token", "word"]
"""The unit of a row of a table of surprisals."""
Space = Literal["before", "after"]
"""Which neighbour a blank between two words belongs to: the one that it precedes, or the one that
it follows."""
Texts = list[str] | tuple[str, ...]
"""Several texts; every other iterable of strings, such as a column of a table, does too."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class SurprisalInput:
    """The texts that ``surprisals`` scores, and the form of its table."""

    texts: list[str]
    words: list[list[str]] | None = None
    """The given words of each text."""
    labels: list[Any] | None = None
    """The value of the column ``group`` for each text; None: there is one text and no such
    column."""
    row_of_word: NDArray[np.int64] | None = None
    """For each given word its row among the rows of all texts, if groups were given."""
    index: Any = None
    """The index of the table that the given words are a column of."""

    @classmethod
    def from_texts(cls, texts: object) -> "SurprisalInput":
        """Several texts, which are numbered."""
        strings = require_strings(texts, "the text")
        is_column = pandas_index(texts) is not None and len(strings) > 1
        if is_column and all(len(string.split()) == 1 for string in strings):
            raise ParamsError("the text is a column of single words: give it as words=")
        return cls(strings, labels=list(range(len(strings))))

    @classmethod
    def from_words(cls, words: list[Any], text: object, index: Any) -> "SurprisalInput":
        """The words of one text, which are joined by spaces unless the text is given too."""
        words = require_strings(words, "words")
        texts = [_join(words) if text is None else require_text(text, "the text")]
        return cls(texts, [words], index=index)

    @classmethod
    def from_word_lists(cls, lists: list[Any], texts: object) -> "SurprisalInput":
        """The words of several texts, which are numbered."""
        words = [
            require_strings(item, f"words[{number}]", "list of strings")
            for number, item in enumerate(lists)
        ]
        if texts is None:
            strings = list(map(_join, words))
        else:
            strings = require_strings(texts, "the text", "list of strings")
        require_same_length("text", strings, "list", words)
        return cls(strings, words, list(range(len(words))))

    @classmethod
    def from_groups(cls, words: list[Any], groups: object, index: Any) -> "SurprisalInput":
        """Words with a label each: those of one label, in their order, are a text."""
        import pandas as pd

        labels = require_list(groups, "groups must be a list of labels")
        words = require_strings(words, "words")
        require_same_length("word", words, "group", labels)
        try:
            group_of_word, distinct = pd.factorize(pd.Series(labels, dtype=object))
        except TypeError as error:  # a list, for example
            raise ParamsError("a label in groups must be a number or a string") from error
        if (group_of_word < 0).any():
            first = int((group_of_word < 0).argmax())
            raise ParamsError(f"groups[{first}] is missing: give a label for each word")
        lists: list[list[str]] = [[] for _ in distinct]
        for word, group in zip(words, group_of_word, strict=True):
            lists[group].append(word)
        row_of_word = np.argsort(np.argsort(group_of_word, kind="stable"))
        return cls(list(map(_join, lists)), lists, list(distinct), row_of_word, index)


def _join(words: Iterable[str]) -> str:
    """Return words with one space between them; an empty one adds nothing."""
    return " ".join(filter(None, (word.strip(" \t\r\n") for word in words)))


def parse_input(text: object, words: object, groups: object) -> SurprisalInput:
    """Return what is to be scored. Raises ParamsError for arguments that make no sense together."""
    if words is None:
        if groups is not None:
            raise ParamsError("groups are those of words: give words too")
        return SurprisalInput([text]) if isinstance(text, str) else SurprisalInput.from_texts(text)
    items, index = require_list(words, "words must be a list of words"), pandas_index(words)
    if groups is not None:
        if text is not None:
            raise ParamsError(
                "with groups, give words and no text: the text of a group is its words"
            )
        return SurprisalInput.from_groups(items, groups, index)
    if any(map(is_collection, items)):
        return SurprisalInput.from_word_lists(items, text)
    return SurprisalInput.from_words(items, text, index)


def pandas_index(value: Any) -> Any:
    """Return the index of a column of a table; None for other values."""
    index = getattr(value, "index", None)
    return None if callable(index) else index  # a list has a method of this name


def is_collection(value: object) -> bool:
    """Return whether a value is several things, and not one text or number."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes | Mapping)
        and getattr(value, "ndim", 1) == 1
    )


def require_text(value: object, what: str) -> str:
    """Return a text. Raises ParamsError if it is not one, and DataError for an unpaired surrogate,
    which UTF-8 cannot encode."""
    if not isinstance(value, str):
        raise ParamsError(f"{what} must be a string, not {type(value).__name__}")
    if surrogate := _SURROGATE.search(value):
        position = f"{surrogate[0]!r}, at position {surrogate.start()}"
        raise DataError(f"{what} has half a character, {position}: remove or replace it")
    return value


def require_list(value: Any, complaint: str) -> list[Any]:
    """Return several things as a list. Raises ParamsError, with the complaint, for others."""
    if not is_collection(value):
        raise ParamsError(f"{complaint}, not {type(value).__name__}")
    return list(value)


def require_strings(value: object, what: str, expected: str = "string") -> list[str]:
    """Return some strings as a list. Raises ParamsError for anything else; ``expected`` names the
    type in the error."""
    items = require_list(value, f"{what} must be a {expected}")
    for number, item in enumerate(items):
        if not isinstance(item, str):
            problem = f"not {type(item).__name__}"
            if _is_missing(item):
                problem = 'but it is missing: give "" for no word, and read tables with '
                problem += 'keep_default_na=False, so that "NA" stays a word'
            raise ParamsError(f"{what}[{number}] must be a string, {problem}")
    return items


def _is_missing(item: object) -> bool:
    import pandas as pd

    return pd.api.types.is_scalar(item) and bool(pd.isna(item))


def broadcast_contexts(context: object, texts: Sequence[str]) -> Sequence[object]:
    """Return the context of each of some texts. Raises ParamsError if there are more or fewer."""
    if not is_collection(context):
        return [context] * len(texts)
    contexts = require_strings(context, "the context")
    require_same_length("text", texts, "context", contexts)
    return contexts


def require_same_length(
    noun: str, items: Sequence[Any], other_noun: str, others: Sequence[Any]
) -> None:
    """Raise ParamsError if there are not as many of one thing as of another."""
    if len(items) != len(others):
        numbers = f"{count_noun(len(items), noun)}, but {count_noun(len(others), other_noun)}"
        raise ParamsError(f"{numbers}: give one for each")
