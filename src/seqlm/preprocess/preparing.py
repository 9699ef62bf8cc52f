"""From a raw corpus to three cleaned splits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seqlm.core.errors import DataError
from seqlm.core.files import read_json, temporary_folder
from seqlm.core.text import TextSize, count_text, quantity
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks
from seqlm.preprocess.splitting import split_text

_HINT = b"PROJECT GUTENBERG EBOOK"
_MARKER = re.compile(rb"\*\*\* ?(START|END) OF TH(?:E|IS) " + _HINT)
_BLOCK_BYTES = 1 << 20
_MAX_MARKER = 64
"""Bytes of a marker, at most."""


def boilerplate_share(path: Path) -> float:
    """Return the share of a file that is before the start marker and after the end marker; 0 if it has neither."""
    size, offset, tail = path.stat().st_size, 0, b""
    start, end = None, size
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            data = tail + block
            for marker in _MARKER.finditer(data) if _HINT in data else ():
                position = offset - len(tail) + marker.start()
                if marker[1] == b"END":
                    end = position
                elif start is None:
                    start = position
            offset, tail = offset + len(block), data[-_MAX_MARKER:]
    return ((start or 0) + size - end) / max(size, 1)


MIN_CHARACTERS = 500
"""Characters of the shortest text that is accepted, so that val and test, a tenth each, have some words to score."""
_FOREIGN_SHARE_WORTH_A_WARNING = 0.01


@dataclass(frozen=True)
class Preprocessed:
    """The size of each split of a corpus, and what a user should know about the text."""

    sizes: dict[str, TextSize]
    decoding: DecodingReport
    warnings: list[str]


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
            whole = count_text(cleaned)
            require_enough(whole, normalise, MIN_CHARACTERS)
            split_text(cleaned, parts, fractions, whole.characters + whole.lines)
        except DataError as error:
            raise DataError(f"{raw.name}: {error}") from error
        sizes = {split: count_text(path) for split, path in parts.items()}
        for split, size in sizes.items():
            if size.words == 0:
                raise DataError(f"{raw.name}: the {split} split has no words: change preprocess.split")
        for split, path in parts.items():
            path.replace(folder / f"{split}.txt")
    warnings = decoding_warnings(decoding, normalise)
    if share := boilerplate_share(raw.path):
        warnings.append(
            f"{share:.1%} of the text is Project Gutenberg's header and licence, before its line '*** START OF' and "
            "after '*** END OF': remove them, or models learn from one and are scored on the other"
        )
    return Preprocessed(sizes, decoding, warnings)


def decoding_warnings(decoding: DecodingReport, normalise: str) -> list[str]:
    """Return what a user should know about the decoding and cleaning of a text."""
    found = []
    if decoding.replaced:
        was = "was" if decoding.replaced == 1 else "were"
        found.append(f"{quantity(decoding.replaced, 'byte sequence')} {was} not UTF-8 and {was} replaced")
    share = decoding.foreign_letters / max(1, decoding.letters)
    if normalise == "letters" and share >= _FOREIGN_SHARE_WORTH_A_WARNING:
        found.append(
            f"{share:.1%} of the letters are not A-Z and were dropped: set preprocess.normalise: none to keep them"
        )
    return found


def require_enough(size: TextSize, normalise: str, min_characters: int) -> None:
    """Raise DataError if a cleaned text has no words or is too short."""
    other_scripts = ", or set preprocess.normalise: none for other scripts" if normalise == "letters" else ""
    if size.words == 0:
        what = "has no letters A-Z" if normalise == "letters" else "has nothing but white space"
        raise DataError(f"{what}: bring a text{other_scripts}")
    if size.characters < min_characters:
        raise DataError(
            f"has only {quantity(size.characters, 'character')} after cleaning, too few to train on and to score: "
            f"bring a text of at least {min_characters}{other_scripts}"
        )
