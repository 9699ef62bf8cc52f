"""A text of a user's own: read, and described by its score."""

import math
from pathlib import Path
from typing import BinaryIO

from seqlm.core.errors import DataError
from seqlm.core.files import open_unpacked
from seqlm.core.progress import count_noun, shown
from seqlm.models.surprisals import Score
from seqlm.preprocess.cleaning import decode_raw

STDIN = Path("-")
"""Stands for standard input."""
MAX_SHOWN_CHARS = 20_000
"""Characters that the page of the text shows, so that it stays small."""


def text_name(path: Path) -> str:
    """Return what messages call a text."""
    return "standard input" if path == STDIN else shown(path)


def read_text_file(path: Path, stdin: BinaryIO) -> str:
    """Return the text of a UTF-8 file, plain or packed with gzip, bzip2 or xz; the path ``-`` is
    ``stdin``.

    Raises DataError if it cannot be read or decoded.
    """
    name = text_name(path)
    if path == STDIN:
        content = stdin.read()
    elif path.is_file():
        with open_unpacked(path, name) as file:
            content = file.read()
    else:
        problem = "not a regular file" if path.exists() else "no such file"
        raise DataError(f"{name}: {problem}")
    if not content:
        raise DataError(f"{name}: empty: use another text")
    return decode_raw(content, name).decode()


def describe_score(score: Score, kind: str) -> str:
    """Return a score of a model over a kind of token as one line."""
    perplexity, known, bits = (
        "infinite" if math.isinf(value) else f"{value:.3f}"
        for value in (score.perplexity, score.perplexity_known, score.bits_per_character)
    )
    without = f" ({known} without unknown ones)" if 0 < score.unknown_share < 1 else ""
    return (
        f"perplexity {perplexity} per {kind}{without}, {bits} bits per character, "
        f"{count_noun(score.tokens, 'token')}, {score.unknown_share:.1%} of them unknown"
    )
