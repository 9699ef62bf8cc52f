"""A text of a user's own: read, and described by its score."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seqlm.core.errors import DataError
from seqlm.core.files import open_maybe_gzipped
from seqlm.core.progress import count_noun, shown
from seqlm.core.text import TextSize
from seqlm.models.encoding import cleaning_remarks
from seqlm.models.surprisals import TextSurprisals
from seqlm.preprocess.cleaning import clean_text, decode_raw, require_enough

STDIN = Path("-")
"""Stands for standard input."""
MAX_SHOWN_CHARS = 20_000
"""Characters that the page of the text shows, so that it stays small."""
_MIN_CHARS = 2


@dataclass(frozen=True)
class UserText:
    """A text of a user's own."""

    name: str
    """The path of its file, as it is shown."""
    original: str
    """As it is in the file."""
    remarks: list[str]
    """What a user should know about the cleaning of the text, and about the part that the page
    shows."""


def read_text_file(path: Path, stdin: BinaryIO) -> str:
    """Return the text of a UTF-8 file, plain or packed with gzip; the path ``-`` is ``stdin``.

    Raises DataError if it cannot be read or decoded.
    """
    return _read(path, stdin)[1]


def read_user_text(path: Path, normalise: str, stdin: BinaryIO) -> UserText:
    """Return a user's own text with what cleaning does to it.

    Raises DataError if it cannot be read or decoded, or if too little is left after cleaning.
    """
    name, original = _read(path, stdin)
    remarks, text = cleaning_remarks(original, normalise), clean_text(original, normalise)
    try:
        require_enough(TextSize.of(f"{text}\n".encode()), normalise, _MIN_CHARS)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    if len(text) > MAX_SHOWN_CHARS:
        remarks.append(f"a page shows the first {MAX_SHOWN_CHARS:,} of {len(text):,} characters")
    return UserText(name, original, remarks)


def _read(path: Path, stdin: BinaryIO) -> tuple[str, str]:
    if path == STDIN:
        name, content = "standard input", stdin.read()
    else:
        name = shown(path)
        if not path.is_file():
            problem = "not a regular file" if path.exists() else "no such file"
            raise DataError(f"{name}: {problem}")
        with open_maybe_gzipped(path, name) as file:
            content = file.read()
    if not content:
        raise DataError(f"{name}: empty: use another text")
    return name, decode_raw(content, name).decode()


def describe_score(name: str, surprisals: TextSurprisals) -> list[str]:
    """Return a model's score of a text as one line, and remarks on it. Raises DataError if the text
    has no scored token."""
    score = surprisals.score(f"{name}: the text")
    perplexity, known, bits = (
        "infinite" if math.isinf(value) else f"{value:.3f}"
        for value in (score.perplexity, score.perplexity_known, score.bits_per_character)
    )
    kind = surprisals.encoded.vocab.kind
    without = f" ({known} without unknown ones)" if 0 < score.unknown_share < 1 else ""
    line = (
        f"perplexity {perplexity} per {kind}{without}, {bits} bits per character, "
        f"{count_noun(score.tokens, 'token')}, {score.unknown_share:.1%} of them unknown"
    )
    return [f"{name}: {text}" for text in (line, *score.remarks)]
