"""From a raw corpus to three cleaned splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seqlm.core.errors import DataError
from seqlm.core.files import read_json, temporary_folder
from seqlm.core.text import TextSize, count_text
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText
from seqlm.preprocess.splitting import split_text

MIN_CHARACTERS = 500
"""Characters of the shortest text that is accepted, so that val and test, a tenth each, have some words to score."""
_FOREIGN_SHARE_WORTH_A_WARNING = 0.01


@dataclass(frozen=True)
class Preprocessed:
    """The size of each split of a corpus, and what decoding found."""

    counts: dict[str, TextSize]
    decoding: DecodingReport

    def warnings(self, normalise: str) -> list[str]:
        """Return what a user should know about the text."""
        decoding, found = self.decoding, []
        if decoding.replaced:
            found.append(f"{decoding.replaced} byte sequences were not UTF-8 and were replaced")
        share = decoding.foreign_letters / max(1, decoding.letters)
        if normalise == "letters" and share >= _FOREIGN_SHARE_WORTH_A_WARNING:
            found.append(
                f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none to keep them"
            )
        return found


def find_raw_text(path: Path, record: Path) -> RawText:
    """Return the text that the download stage wrote, with the name in its ``record`` if there is one."""
    if not path.exists():
        raise DataError(f"{path}: no such file: run the stage that writes it")
    known = read_json(record) if record.exists() else None
    return RawText(path, str(known["file"]) if isinstance(known, dict) and "file" in known else str(path))


def clean_and_split(
    raw: RawText, folder: Path, normalise: str, errors: str, fractions: Mapping[str, float]
) -> Preprocessed:
    """Clean ``raw`` and write ``NAME.txt`` to ``folder`` for each of the ``fractions``, in order.

    No split is replaced before all are complete. Raises DataError for text that cannot be
    decoded, has no letters (under ``normalise="letters"``) or is too short.
    """
    with temporary_folder(folder) as work:
        cleaned, parts = work / "cleaned.txt", {split: work / f"{split}.txt" for split in fractions}
        decoding = DecodingReport()
        with cleaned.open("wb") as target:
            target.writelines(clean_blocks(raw, normalise, errors, decoding))
        try:
            counts = _split(cleaned, parts, normalise, fractions)
        except DataError as error:
            raise DataError(f"{raw.name}: {error}") from error
        for split, path in parts.items():
            path.replace(folder / f"{split}.txt")
    return Preprocessed(counts, decoding)


def _split(
    cleaned: Path, parts: Mapping[str, Path], normalise: str, fractions: Mapping[str, float]
) -> dict[str, TextSize]:
    """Split a cleaned text into files, and return the size of each. Raises DataError for text that is too short."""
    whole = count_text(cleaned)
    _require_enough(whole, normalise)
    split_text(cleaned, parts, fractions, whole.characters + whole.lines)
    counts = {split: count_text(path) for split, path in parts.items()}
    for split, count in counts.items():
        if count.words == 0:
            raise DataError(f"the {split} split holds no words: bring a longer text")
    return counts


def _require_enough(count: TextSize, normalise: str) -> None:
    other_scripts = ", or set preprocess.normalise: none for other scripts" if normalise == "letters" else ""
    if count.words == 0:
        what = "holds no letters A-Z" if normalise == "letters" else "holds nothing but white space"
        raise DataError(f"{what}: bring a text{other_scripts}")
    if count.characters < MIN_CHARACTERS:
        raise DataError(
            f"{count.characters} characters are left after cleaning, too few to train on and to score: "
            f"bring a text of at least {MIN_CHARACTERS}{other_scripts}"
        )
