"""Texts that pages show with the surprisal of each token: the beginning of test, and a text of a
user's own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from seqlm.core.errors import DataError
from seqlm.core.metrics import Nll
from seqlm.core.progress import count_noun, shown
from seqlm.core.text import TextSize
from seqlm.models.language_model import cleaning_remarks
from seqlm.models.surprisals import TextSurprisals
from seqlm.pipeline.download.corpora import copy_text_file
from seqlm.preprocess.cleaning import clean_text, read_raw, require_enough
from seqlm.vocab.kinds import TokenKind

INFINITE = "infinite"
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


def read_user_text(path: Path, normalise: str, stdin: BinaryIO) -> UserText:
    """Return a user's own text, plain or ``.gz``.

    The path ``-`` is standard input, plain text. Raises DataError if it cannot be read or decoded,
    or if too little is left after cleaning.
    """
    name = "standard input" if path == STDIN else shown(path)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.txt"
        if path == STDIN:
            path = Path(folder) / name
            path.write_bytes(stdin.read())
        copy_text_file(path, copy, name)
        original = read_raw(copy, name).decode()
    remarks, text = cleaning_remarks(original, normalise), clean_text(original, normalise)
    try:
        require_enough(TextSize.of(f"{text}\n".encode()), normalise, _MIN_CHARS)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    if len(text) > MAX_SHOWN_CHARS:
        remarks.append(f"the page shows the first {MAX_SHOWN_CHARS:,} of {len(text):,} characters")
    return UserText(name, original, remarks)


def describe_score(name: str, found: TextSurprisals) -> str:
    """Return a model's score of a text as one line. Raises DataError if the text has no scored
    token."""
    score = found.score(f"{name}: the text")
    perplexity, bits = (
        "infinite" if math.isinf(value) else f"{value:.3f}"
        for value in (score.perplexity, score.bits_per_character)
    )
    return (
        f"{name}: perplexity {perplexity} per {found.encoded.vocab.kind}, {bits} bits per character, "
        f"{count_noun(score.tokens, 'token')}, {score.unknown_share:.1%} of them unknown"
    )


def page_content(found: TextSurprisals) -> dict[str, Any]:
    """Return what the page shows of a model: its metrics, and the beginning of the text with
    surprisals."""
    encoded, nll = found.encoded, found.nll + found.encoded.spelling
    has_no_first = int(np.isnan(nll[:1]).sum())
    shown = passage(encoded.vocab.token_kind, encoded.tokens, nll[has_no_first:], MAX_SHOWN_CHARS)
    return {"passage": shown} | found.metrics


def passage(kind: TokenKind, tokens: Sequence[str], nll: Nll, num_chars: int) -> dict[str, Any]:
    """Return the first tokens of a text and their surprisals in bits, rounded to tenths.

    ``nll`` belong to the last tokens: one before them, usually the first, is not scored, and its
    surprisal is null. The surprisal of a token without a probability is :data:`INFINITE`. Subwords
    are shown as characters, each with its share of the surprisal.
    """
    used, length = 0, 0
    while used < len(tokens) and length < num_chars:
        length += kind.length(tokens[used]) + len(kind.separator)
        used += 1
    finite_or_infinite = np.nan_to_num(nll[:used], nan=math.inf, posinf=math.inf)
    not_scored = [math.nan] * (len(tokens) - len(nll))
    shown, values = list(tokens[:used]), [*not_scored, *finite_or_infinite.tolist()][:used]
    if kind.is_lossless and not kind.is_character:
        shown, values = per_character(kind, shown, values)
    return {
        "tokens": shown,
        "separator": kind.separator,
        "bits": [_rounded(value) for value in values],
    }


def per_character(
    kind: TokenKind, tokens: Sequence[str], values: Sequence[float]
) -> tuple[list[str], list[float]]:
    """Return the characters of a text, each with an equal share of its token's value.

    The values of the bytes of one character are summed.
    """
    characters, shares = list(kind.join(tokens)), []
    for token, value in zip(tokens, values, strict=True):
        num_chars = kind.length(token)
        if num_chars:
            shares += [value / num_chars] * num_chars
        elif shares:
            shares[-1] = (
                value if math.isnan(shares[-1]) else shares[-1] + value
            )  # the first token has no value
    return characters, [*shares, *[0.0] * len(characters)][: len(characters)]


def _rounded(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return INFINITE if math.isinf(value) else round(value / math.log(2), 1)
