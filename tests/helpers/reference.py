"""From raw text to vocabularies in plain Python, one token at a time: what the fast code is compared with.

These functions are the definition. They are slow, and nobody but the tests uses them.
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError


def clean_line(line: str) -> str:
    """Return a line as the book cleans it (section 8.2)."""
    return re.sub("[^A-Za-z]+", " ", line).strip().lower()


def clean(content: bytes, normalise: str) -> tuple[str, int, int, int]:
    """Return the cleaned text of a file's content, its letters, those other than A-Z, and all characters but blanks.

    The message of a DataError is a pattern: if two things are wrong, either may be named.
    """
    decoded = decode(content)
    text = unicodedata.normalize("NFC", decoded).replace("\r\n", "\n").replace("\r", "\n")
    foreign = sum(character.isalpha() for character in text if character > "\x7f")
    letters = foreign + len(re.findall("[A-Za-z]", text))
    visible = sum(not character.isspace() for character in text)
    last = "\n" if text and not text.endswith("\n") else ""
    if normalise == "letters":
        text = "\n".join(clean_line(line) for line in text.split("\n"))
    return text + last, letters, foreign, visible


def decode(content: bytes) -> str:
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    wrong, text = ([f"NUL byte at byte {content.index(0)}"] if 0 in content else []), ""
    try:
        text = content.removeprefix(mark).decode()
    except UnicodeDecodeError as error:
        wrong.append(f"not UTF-8 at byte {len(mark) + error.start}")
    if wrong:
        raise DataError("|".join(wrong))
    return text


def count(text: str) -> tuple[int, int, int]:
    return text.count("\n"), len(text) - text.count("\n"), len(words(text))


def words(text: str) -> list[str]:
    return [word for word in re.split("[ \n\t]", text) if word]


def tokens(text: str, kind: str, line_separator: str) -> list[str]:
    text = text.removesuffix("\n")
    return list(text.replace("\n", line_separator)) if kind == "char" else words(text)


def vocabulary(train: Iterable[str], min_freq: int) -> tuple[list[str], list[int]]:
    counter = Counter(train)  # most_common keeps the order of first appearance
    frequent = [token for token, number in counter.most_common() if number >= min_freq and token != "<unk>"]
    counts = [counter[token] for token in frequent]
    return ["<unk>", *frequent], [counter.total() - sum(counts), *counts]


def encode(stream: Sequence[str], vocab: Sequence[str]) -> list[int]:
    indices = {token: index for index, token in enumerate(vocab)}
    return [indices.get(token, 0) for token in stream]


def whole_text(splits: Sequence[str], kind: str, line_separator: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the tokens of all splits as one text by falling frequency, ties by first appearance, and their ids."""
    stream: list[str] = []
    for index, text in enumerate(splits):
        if index and kind == "char" and line_separator:
            stream.append(line_separator)
        stream += tokens(text, kind, line_separator)
    names = [token for token, _ in Counter(stream).most_common()]
    numbers = {token: number for number, token in enumerate(names, start=1)}
    return ["<unk>", *names], np.array([numbers[token] for token in stream], np.int64)
