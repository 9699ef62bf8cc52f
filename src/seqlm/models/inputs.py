"""What users give to a model: texts, words, groups and contexts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.progress import count_noun
from seqlm.core.text import LINE_ENDS

By = Literal["token", "word"]
"""The unit of a row of a table of surprisals."""
Space = Literal["before", "after"]
"""Which neighbour a blank between two words belongs to: the one that it precedes, or the one that
it follows."""
Texts = Iterable[str]
"""Several texts, such as a list or a column of a table; they have an order."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARK = "\ufeff"


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


def parse_input(text: object, words: object, groups: object) -> SurprisalInput:
    """Return what is to be scored. Raises ParamsError for arguments that make no sense together."""
    if words is None:
        if groups is not None:
            raise ParamsError("groups require words: pass words too")
        texts, is_single = require_texts(text, "the text")
        is_column = _pandas_index(text) is not None and len(texts) > 1
        if is_column and all(len(string.split()) == 1 for string in texts):
            raise ParamsError("the text is a column of single words: pass it as words=")
        return SurprisalInput(texts, labels=None if is_single else list(range(len(texts))))
    items = list(require_several(words, "words must be a list of words"))
    index = _pandas_index(words)
    if groups is not None:
        if text is not None:
            raise ParamsError(
                "with groups, pass words and no text: the text of a group is its words"
            )
        require_same_index(words=words, groups=groups)
        return _group_words(require_strings(items, "words"), groups, index)
    is_nested = any(map(is_collection, items))
    if is_nested:
        lists = [
            require_strings(item, f"words[{number}]", "list of strings")
            for number, item in enumerate(items)
        ]
    else:
        lists = [require_strings(items, "words")]
    if text is None:
        texts = list(map(_join, lists))
    elif is_nested:
        texts = require_strings(text, "the text", "list of strings")
        require_same_length("text", texts, "list", lists)
    else:
        texts = [require_text(text, "the text")]
    labels = list(range(len(lists))) if is_nested else None
    return SurprisalInput(texts, lists, labels, index=None if is_nested else index)


def _group_words(words: list[str], groups: object, index: Any) -> SurprisalInput:
    """Return words with a label each: those of one label, in their order, are a text."""
    import pandas as pd

    labels = list(require_several(groups, "groups must be a list of labels"))
    require_same_length("word", words, "group", labels)
    try:
        group_of_word, distinct = pd.factorize(pd.Series(labels, dtype=object))
    except TypeError as error:  # a list, for example
        raise ParamsError("a label in groups must be a number or a string") from error
    if (group_of_word < 0).any():
        first = int((group_of_word < 0).argmax())
        raise ParamsError(f"groups[{first}] is missing: pass a label for each word")
    lists: list[list[str]] = [[] for _ in distinct]
    for word, group in zip(words, group_of_word, strict=True):
        lists[group].append(word)
    row_of_word = np.argsort(np.argsort(group_of_word, kind="stable"))
    return SurprisalInput(list(map(_join, lists)), lists, list(distinct), row_of_word, index)


def _join(words: Iterable[str]) -> str:
    """Return words with one space between them; an empty one adds nothing."""
    return " ".join(filter(None, (word.strip(f" \t{LINE_ENDS}") for word in words)))


def _pandas_index(value: Any) -> Any:
    """Return the index of a column of a table; None for other values."""
    index = getattr(value, "index", None)
    return None if callable(index) else index  # a list has a method of this name


def require_same_index(**columns: object) -> None:
    """Raise ParamsError if two columns of tables have different indexes: to join them by place, or
    to leave out what only one of them has, could hide a mistake."""
    first, second = map(_pandas_index, columns.values())
    if first is not None and second is not None and not first.equals(second):
        names = " and ".join(columns)
        raise ParamsError(f"{names} have different indexes: take both from one table, or use lists")


def is_collection(value: object) -> bool:
    """Return whether a value is several things in an order, and not one text, number or table."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes | Mapping | set | frozenset)
        and getattr(value, "ndim", 1) == 1
        and not hasattr(value, "columns")
    )


def _problem(value: object) -> str:
    """Return what is wrong with a value that is no text, and what to do."""
    problem = f"not {type(value).__name__}"
    if isinstance(value, set | frozenset):
        return f"{problem}, which has no order: pass a list"
    if isinstance(value, Path):
        return f"{problem}: pass its text, with read_text()"
    if hasattr(value, "columns"):
        return f"{problem}: pass one of its columns"
    if is_collection(value):
        return f"{problem}: join its words with spaces"
    if _is_missing(value):
        return (
            'but it is missing: pass "" for no text, and read tables with keep_default_na=False, '
            'so that "NA" stays a word'
        )
    return problem


def _is_missing(value: object) -> bool:
    import pandas as pd

    return value is not None and pd.api.types.is_scalar(value) and bool(pd.isna(value))


def require_text(value: object, what: str) -> str:
    """Return a text without a byte order mark. Raises ParamsError if it is not one, and DataError
    for an unpaired surrogate, which UTF-8 cannot encode."""
    if not isinstance(value, str):
        raise ParamsError(f"{what} must be a string, {_problem(value)}")
    if not value.isascii() and (surrogate := _SURROGATE.search(value)):
        position = f"{surrogate[0]!r}, at position {surrogate.start()}"
        raise DataError(f"{what} contains an unpaired surrogate, {position}: remove or replace it")
    return value.removeprefix(_BYTE_ORDER_MARK)


def require_several(value: Any, complaint: str) -> Iterable[Any]:
    """Return several things. Raises ParamsError, with the complaint, for others."""
    if not is_collection(value):
        raise ParamsError(f"{complaint}, {_problem(value)}")
    several: Iterable[Any] = value
    return several


def require_strings(value: object, what: str, expected: str = "string") -> list[str]:
    """Return some strings as :func:`require_text` does; ``expected`` names the type in the error
    for another value."""
    items = require_several(value, f"{what} must be a {expected}")
    return [require_text(item, f"{what}[{number}]") for number, item in enumerate(items)]


def require_texts(value: object, what: str) -> tuple[list[str], bool]:
    """Return one text or several as a list, and whether it is one. Raises as
    :func:`require_text`."""
    if is_collection(value):
        return require_strings(value, what), False
    return [require_text(value, what)], True


def broadcast_contexts(context: object, texts: Sequence[str]) -> list[str]:
    """Return the context of each of some texts. Raises ParamsError if there are more or fewer."""
    if context is None:
        return [""] * len(texts)
    contexts, is_single = require_texts(context, "the context")
    if is_single:
        return contexts * len(texts)
    require_same_length("text", texts, "context", contexts)
    return contexts


def require_same_length(
    noun: str, items: Sequence[Any], other_noun: str, others: Sequence[Any]
) -> None:
    """Raise ParamsError if there are not as many of one thing as of another."""
    if len(items) != len(others):
        numbers = f"{count_noun(len(items), noun)}, but {count_noun(len(others), other_noun)}"
        raise ParamsError(f"{numbers}: pass one for each")
