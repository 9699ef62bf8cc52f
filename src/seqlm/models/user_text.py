"""Scores a user's own texts."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.metrics import Nll
from seqlm.core.progress import quantity, shown
from seqlm.core.text import TextSize, words
from seqlm.download.corpora import copy_own_text
from seqlm.models.language_model import LanguageModel, ScoredTokens, cleaning_remarks
from seqlm.models.units import ReadText, TokensInText
from seqlm.preprocess.cleaning import CleanedText, read_raw
from seqlm.preprocess.preparing import require_enough
from seqlm.preprocess.settings import PreprocessParams
from seqlm.score.settings import By, Space
from seqlm.score.surprisal_view import passage

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
    read: ReadText
    remarks: list[str]
    """What a user should know about the cleaning of the text."""


def read_user_text(path: Path, preprocess: PreprocessParams, max_bytes: int, stdin: BinaryIO) -> UserText:
    """Return a user's own text, plain or ``.gz``, of at most ``max_bytes`` bytes unpacked.

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
        copy_own_text(path, max_bytes, copy, name)
        original = read_raw(copy, name)
    remarks = cleaning_remarks(original, preprocess.normalise)
    read = ReadText(CleanedText(original, preprocess.normalise))
    text = read.text
    num_ends, num_words = text.count("\n"), len(words(text.replace("\n", " ")))
    try:
        require_enough(TextSize(num_ends, len(text) - num_ends, num_words), preprocess.normalise, _MIN_CHARS)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    return UserText(name, read, remarks)


def describe_score(name: str, scored: ScoredTokens) -> str:
    """Return a model's score of a text as one line."""
    metrics = scored.metrics
    perplexity, bits = (
        "infinite" if metrics[key] is None else f"{metrics[key]:.3f}" for key in ("perplexity", "bits_per_character")
    )
    blanks = f" (spaces and line ends would add {found:.3f})" if (found := metrics["separator_bits"]) else ""
    return (
        f"{name}: perplexity {perplexity} per {scored.text.vocab.kind}, {bits} bits per character{blanks}, "
        f"{quantity(metrics['tokens'], 'token')}, {metrics['unknown_share']:.1%} of them unknown"
    )


def page_content(scored: Mapping[str, ScoredTokens]) -> dict[str, dict[str, Any]]:
    """Return for each model what the page shows: its metrics, and the beginning of the text with surprisals."""
    content = {}
    for name, found in scored.items():
        tokens, nll = _without_marks(found.text, found.stream.with_unknown_cost(found.nll))
        shown = passage(found.text.vocab.token_kind, tokens, nll, MAX_SHOWN_CHARS)
        content[name] = {"passage": shown} | found.metrics
    return content


def _without_marks(text: TokensInText, nll: Nll) -> tuple[Sequence[str], Nll]:
    """Return the tokens of a text without sentence marks; the -log p of these go to the word before, or the first."""
    if text.is_mark is None:
        return text.tokens, nll
    words = [token for token, is_mark in zip(text.tokens, text.is_mark, strict=True) if not is_mark]
    word_of_token = np.maximum(np.cumsum(~text.is_mark) - 1, 0)
    return words, np.bincount(word_of_token[1:], nll)[: len(words)].astype(np.float64)


def remark_on_length(text: str) -> list[str]:
    """Return what to say of a text that is too long for the page."""
    if len(text) <= MAX_SHOWN_CHARS:
        return []
    return [f"the page shows the first {MAX_SHOWN_CHARS:,} of {len(text):,} characters"]


def surprisal_table(
    scored: Mapping[str, Mapping[str, ScoredTokens]], by: By = "word", space: Space = "before"
) -> "pd.DataFrame":
    """Return one row for each unit of some texts, with its surprisal in bits under each model.

    ``scored``: name of a text -> model -> its scored tokens. The columns are ``file`` if there are several texts;
    ``position``, ``text``, ``original``, ``start``, ``end`` and ``reason`` as in :meth:`LanguageModel.surprisals`;
    ``space`` if blanks belong to units; and one for each model, which adds up to the model's total. Raises ParamsError
    if the models do not share these units.
    """
    import pandas as pd

    parts = []
    for name, of_models in scored.items():
        units = {model: found.units(by, space) for model, found in of_models.items()}
        first, *others = units.values()
        if any(other.text != first.text or other.start.tolist() != first.start.tolist() for other in others):
            raise ParamsError("these models have different tokens: set by to char, word or line")
        columns = {"text": first.text, "original": first.original, "start": first.start, "end": first.end}
        part = pd.DataFrame({"file": name, "position": range(len(first.text))} | columns)
        reasons = zip(*(each.reason for each in units.values()), strict=True)
        part["reason"] = ["; ".join(dict.fromkeys(filter(None, each))) for each in reasons]
        if by in ("word", "line"):
            part["space"] = space
        for model, each in units.items():
            part[model] = each.bits
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    return table if len(scored) > 1 else table.drop(columns="file")


def score_texts(texts: Sequence[UserText], models: Sequence[LanguageModel]) -> dict[str, dict[str, ScoredTokens]]:
    """Return for each text, by its name, and for each model its scored tokens.

    Raises DataError if a text has fewer than two tokens of a model, or if two texts have one name.
    """
    if len({text.name for text in texts}) < len(texts):
        raise ParamsError("the same text is given twice")
    if len({model.name for model in models}) < len(models):
        raise ParamsError("two models have the same name: rename an ARPA file")
    return {
        text.name: {model.name: model.score_read([text.read], with_separators=True)[0] for model in models}
        for text in texts
    }
