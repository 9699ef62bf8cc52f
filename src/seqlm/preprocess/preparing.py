"""From a raw corpus to three cleaned splits."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from seqlm.core.errors import DataError, MachineError
from seqlm.core.text import Counts, count_text
from seqlm.preprocess.cleaning import DecodingReport, clean_file
from seqlm.preprocess.splitting import split_text

_FOREIGN_SHARE_WORTH_A_WARNING = 0.01


@dataclass(frozen=True)
class Preprocessed:
    """What became of a corpus: the size of each split and what decoding met."""

    counts: dict[str, Counts]
    decoding: DecodingReport

    def warnings(self, normalise: str) -> list[str]:
        """Return what a user should know about the text that was kept."""
        decoding, found = self.decoding, []
        if decoding.replaced:
            found.append(f"{decoding.replaced} byte sequences were not UTF-8 and were replaced")
        share = decoding.foreign_letters / max(1, decoding.letters)
        if normalise == "letters" and share >= _FOREIGN_SHARE_WORTH_A_WARNING:
            found.append(
                f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none to keep them"
            )
        return found


def clean_and_split(
    raw: Path, folder: Path, normalise: str, errors: str, fractions: Mapping[str, float]
) -> Preprocessed:
    """Clean ``raw`` and write ``NAME.txt`` to ``folder`` for each of the ``fractions``, in order.

    Nothing is put in place before all splits are whole. Raises DataError for text that
    cannot be decoded, holds no letters (under ``normalise="letters"``) or is too short.
    """
    if not raw.exists():
        raise DataError(f"{raw}: no such file: run the stage that writes it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        workplace = tempfile.TemporaryDirectory(dir=folder, prefix=".", suffix=".part")
    except OSError as error:
        raise MachineError(f"{folder}: cannot be written: {error.strerror}") from error
    with workplace as name:
        cleaned, parts = Path(name) / "cleaned.txt", {split: Path(name) / f"{split}.txt" for split in fractions}
        with _create(cleaned) as target:
            decoding = clean_file(raw, target, normalise, errors)
        _require_words(raw, count_text(cleaned), normalise)
        with ExitStack() as stack:
            split_text(cleaned, {split: stack.enter_context(_create(path)) for split, path in parts.items()}, fractions)
        counts = {split: count_text(path) for split, path in parts.items()}
        for split, count in counts.items():
            if count.words == 0:
                raise DataError(f"{raw}: the {split} split holds no words: bring a longer text")
        for split, path in parts.items():
            path.replace(folder / f"{split}.txt")
    return Preprocessed(counts, decoding)


def _create(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def _require_words(raw: Path, count: Counts, normalise: str) -> None:
    if count.words == 0:
        what = "holds no letters A-Z" if normalise == "letters" else "holds nothing but white space"
        raise DataError(f"{raw}: {what}: bring a text, or set preprocess.normalise: none for other scripts")
