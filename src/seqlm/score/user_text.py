"""Scores a user's own texts."""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.progress import quantity, shown
from seqlm.core.text import TextSize, words
from seqlm.download.corpora import copy_own_text
from seqlm.models.language_model import LanguageModel, cleaning_remarks
from seqlm.models.settings import By, Space
from seqlm.models.surprisals import TextSurprisals, words_of
from seqlm.preprocess.cleaning import clean_text, read_raw
from seqlm.preprocess.preparing import require_enough
from seqlm.preprocess.settings import PreprocessParams
from seqlm.score.passage import passage

if TYPE_CHECKING:
    import pandas as pd

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
    cleaned: str
    remarks: list[str]
    """What a user should know about the cleaning of the text."""


def read_user_text(path: Path, preprocess: PreprocessParams, stdin: BinaryIO) -> UserText:
    """Return a user's own text, plain or ``.gz``.

    The path ``-`` is standard input, plain text. Raises DataError if it cannot be read or decoded, or if too little is
    left after cleaning.
    """
    name = "standard input" if path == STDIN else shown(path)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.txt"
        if path == STDIN:
            path = Path(folder) / name
            with path.open("wb") as file:
                shutil.copyfileobj(stdin, file)
        copy_own_text(path, copy, name)
        original = read_raw(copy, name)
    remarks = cleaning_remarks(original, preprocess.normalise)
    text = clean_text(original, preprocess.normalise)
    num_ends, num_words = text.count("\n"), len(words(text.replace("\n", " ")))
    try:
        require_enough(TextSize(num_ends, len(text) - num_ends, num_words), preprocess.normalise, _MIN_CHARS)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    return UserText(name, original, text, remarks)


def describe_score(name: str, found: TextSurprisals) -> str:
    """Return a model's score of a text as one line."""
    metrics = found.metrics
    perplexity, bits = (
        "infinite" if metrics[key] is None else f"{metrics[key]:.3f}" for key in ("perplexity", "bits_per_character")
    )
    return (
        f"{name}: perplexity {perplexity} per {found.encoded.vocab.kind}, {bits} bits per character, "
        f"{quantity(metrics['tokens'], 'token')}, {metrics['unknown_share']:.1%} of them unknown"
    )


def page_content(text: UserText, found: Mapping[str, TextSurprisals]) -> dict[str, dict[str, Any]]:
    """Return for each model what the page shows: its metrics, and the beginning of the text with surprisals."""
    content = {}
    for name, each in found.items():
        encoded = each.encoded
        tokens, nll = encoded.scored_tokens, each.nll + encoded.spelling
        if encoded.known_anchors is not None:  # sentence marks, which are no part of the text
            rows = each.word_rows(words_of(text.original, encoded.vocab.normalise), "after")
            tokens, nll = rows.text, rows.bits * math.log(2)
        has_no_first = int(np.isnan(nll[:1]).sum())
        shown = passage(encoded.vocab.token_kind, tokens, nll[has_no_first:], MAX_SHOWN_CHARS)
        content[name] = {"passage": shown} | each.metrics
    return content


def remark_on_length(text: str) -> list[str]:
    """Return what to say of a text that is too long for the page."""
    if len(text) <= MAX_SHOWN_CHARS:
        return []
    return [f"the page shows the first {MAX_SHOWN_CHARS:,} of {len(text):,} characters"]


def score_texts(texts: Sequence[UserText], models: Sequence[LanguageModel]) -> dict[str, dict[str, TextSurprisals]]:
    """Return for each text, by its name, and for each model its surprisals.

    Raises DataError if a text has no token that a model can score, and ParamsError if two texts have one name.
    """
    if len({text.name for text in texts}) < len(texts):
        raise ParamsError("the same text is given twice")
    if len({model.name for model in models}) < len(models):
        raise ParamsError("two models have the same name: rename an ARPA file")
    return {text.name: {model.name: _score(model, text.original) for model in models} for text in texts}


def _score(model: LanguageModel, text: str) -> TextSurprisals:
    found = model.score_text(text)
    found.require_tokens(f"{model.name}: the text")
    return found


def surprisal_table(
    texts: Sequence[UserText], scored: Mapping[str, Mapping[str, TextSurprisals]], by: By, space: Space
) -> "pd.DataFrame":
    """Return one row for each unit of some texts, with its surprisal in bits under each model.

    ``scored``: name of a text -> model -> its surprisals. The columns are ``file`` if there are several texts;
    ``position``, ``text`` and ``reason`` as in :meth:`LanguageModel.surprisals`; ``space`` if blanks belong to words;
    and one for each model. Raises ParamsError if the models do not share these units.
    """
    import pandas as pd

    parts = []
    for text in texts:
        found = scored[text.name]
        rows = {
            name: each.token_rows()
            if by == "token"
            else each.word_rows(words_of(text.original, each.encoded.vocab.normalise), space)
            for name, each in found.items()
        }
        first, *others = rows.values()
        if any(other.text != first.text for other in others):
            raise ParamsError("these models have different tokens: set by to word")
        part = pd.DataFrame({"file": text.name, "position": range(len(first.text)), "text": first.text})
        reasons = zip(*(each.reason for each in rows.values()), strict=True)
        part["reason"] = ["; ".join(dict.fromkeys(filter(None, each))) for each in reasons]
        if by == "word":
            part["space"] = space
        for name, each in rows.items():
            part[name] = each.bits
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    return table if len(texts) > 1 else table.drop(columns="file")
