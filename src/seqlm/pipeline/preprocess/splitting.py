"""From a raw corpus to three cleaned splits, in order."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import write_bytes
from seqlm.core.memory import require_memory
from seqlm.core.progress import count_noun
from seqlm.core.stored import Digests, Stored, require_sha256
from seqlm.core.text import LINE_END, SPACE, TextSize, window_starts
from seqlm.preprocess.cleaning import Letters, clean, decode_raw, decoding_warnings, require_enough


def split_text(text: bytes, fractions: Mapping[str, float]) -> dict[str, bytes]:
    """Split a cleaned text in order into a part for each of the ``fractions``, each ended by a line
    end.

    The text is cut at the line ends nearest to the fractions of its bytes. If the nearest line end
    is further away than a tenth of the smallest split, the text is cut at the nearest space
    instead, which becomes a line end. Raises DataError if a split would be empty.
    """
    tolerance = len(text) * min(fractions.values()) / 10
    goals = [reached * len(text) for reached in accumulate(fractions.values())][:-1]
    ends = [0, *(_nearest_cut(text, goal, tolerance) for goal in goals), len(text)]
    if any(end <= start for start, end in pairwise(ends)):
        raise DataError(
            "has too few line ends and spaces to be split: break it into lines, such as sentences"
        )
    # A line end, or a space that becomes one, or something else that one follows, ends a part.
    ends_early = [end - 1 if text[end - 1] in (SPACE, LINE_END) else end for end in ends[1:]]
    bounds = zip(fractions, ends[:-1], ends_early, strict=True)
    return {name: text[start:end] + b"\n" for name, start, end in bounds}


def _nearest_cut(text: bytes, goal: float, tolerance: float) -> int:
    """Return the byte after the line end nearest to a byte, or else after the nearest space."""
    cut = 0
    for mark, reach in ((LINE_END, int(tolerance) + 1), (SPACE, len(text))):
        first = max(int(goal) - reach, 0)
        window = np.frombuffer(text, np.uint8)[first : int(goal) + reach]
        cuts = np.flatnonzero(window == mark) + first + 1
        if len(cuts):
            cut = int(cuts[np.abs(cuts - goal).argmin()])
            if abs(cut - goal) <= tolerance:
                break
    return cut


_GUTENBERG = re.compile(rb"\*\*\* ?(?:START|END) OF TH(?:E|IS) PROJECT GUTENBERG EBOOK")
_SEARCHED = 1 << 20
"""How many bytes of a text's beginning and of its end are searched for Project Gutenberg's
markers."""

MIN_CHARACTERS = 1500
"""Characters of the shortest text that is accepted: with the default settings, its first part is
long enough for a minibatch of every run."""
_FEW_CHARACTERS, _LARGE_SHARE = 5000, 0.1
"""A split with fewer characters, or with a larger share of passages that training has too, and
a larger share of dropped characters are worth a warning."""
_MAX_FOREIGN_SHARE = 0.1
"""Of the letters. What is left of a text of another script would be scored as if it were the
text."""
_MEMORY_PER_BYTE = 6
"""Bytes of memory that cleaning takes for each byte of a text."""


@dataclass(frozen=True)
class Preprocessed:
    """The size of each split of a corpus, and what a user should know about the text."""

    first_lines: list[str]
    sizes: dict[str, TextSize]
    dropped: float
    """The share of the characters, but for blanks, that cleaning drops."""
    repeated: dict[str, float]
    """The share of val and of test in passages that train has too."""
    warnings: list[str]


FIRST_LINES = 11
"""Lines that are shown: as many as the book shows."""
_SHOWN = 1 << 14
"""How far they are read: the text may be one long line."""


def clean_and_split(
    path: Path, name: str, folder: Path, normalise: str, fractions: Mapping[str, float]
) -> Preprocessed:
    """Clean the text of a file and write ``NAME.txt`` to ``folder`` for each of the ``fractions``,
    in order: train, val and test.

    ``name`` is what errors call the file. Raises DataError for text that cannot be decoded, that
    cleaning drops more than a tenth of the letters of, or that is too short, and MachineError for
    one that is too large for this machine's memory.
    """
    require_memory(path.stat().st_size * _MEMORY_PER_BYTE, name)
    raw = decode_raw(path.read_bytes(), name)
    letters = Letters.of(raw)
    dropped = letters.dropped_share if normalise == "letters" else 0.0
    warnings = decoding_warnings(letters, normalise) + _warn_of_cleaning(raw, dropped)
    try:
        if (
            normalise == "letters"
            and letters.foreign_letters > _MAX_FOREIGN_SHARE * letters.letters
        ):
            raise DataError(
                f"{letters.foreign_letters:,} of its {letters.letters:,} letters are not A-Z and "
                "would be dropped: keep them with -S preprocess.normalise=none"
            )
        text = clean(raw, normalise) + b"\n"
        del raw
        require_enough(TextSize.of(text), normalise, MIN_CHARACTERS)
        parts = split_text(text, fractions)
        sizes = {split: TextSize.of(part) for split, part in parts.items()}
        for split, size in sizes.items():
            if size.words < 2:
                has = count_noun(size.words, "word")
                raise DataError(
                    f"the {split} split has {has}, and needs two: change preprocess.split"
                )
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    write_splits(folder, parts)
    first_lines = parts["train"][:_SHOWN].decode(errors="ignore").split("\n")[:FIRST_LINES]
    repeated = repeated_shares(parts)
    warnings += _warn_of_splits(sizes, repeated)
    return Preprocessed(first_lines, sizes, dropped, repeated, warnings)


_SPLITS_FILE = "splits.json"


class SplitsFile(Stored):
    """The content of ``splits.json``, beside the splits."""

    version = 1
    advice = "run the preprocess stage again"

    sha256: Digests
    """Of the file of each split."""


def write_splits(folder: Path, parts: Mapping[str, bytes]) -> None:
    """Write ``NAME.txt`` for each split, and their SHA-256."""
    digests = {}
    for split, part in parts.items():
        write_bytes(folder / f"{split}.txt", part)
        digests[f"{split}.txt"] = sha256(part).hexdigest()
    SplitsFile(sha256=digests).write(folder / _SPLITS_FILE)


def require_splits(folder: Path) -> None:
    """Raise DataError if a split is missing or was changed."""
    for name, digest in SplitsFile.read(folder / _SPLITS_FILE).sha256.items():
        require_sha256(folder / name, digest, SplitsFile.advice)


_BLOCK = 48
"""Bytes that are the same by copying, hardly ever by chance."""
_PASSAGE = 2 * _BLOCK - 1
"""Bytes of a passage: if it is a copy, one of the blocks that it was copied from is whole."""
_PASSAGES = 2000
"""How many are looked at, spread evenly over a split."""


def repeated_shares(parts: Mapping[str, bytes]) -> dict[str, float]:
    """Return the share of each part, after the first, in passages that the first has too.

    The first is cut into blocks of 48 bytes. A passage of 95 bytes counts if one of them occurs
    anywhere in it.
    """
    (_, train), *others = parts.items()
    known = np.sort(_hashes(_windows(train)[::_BLOCK]))
    shares = {}
    for split, part in others:
        starts = window_starts(_PASSAGES, min(_PASSAGE, len(part)), len(part))
        hashes = _hashes(_windows(part)[starts[:, np.newaxis] + np.arange(min(_BLOCK, len(part)))])
        found = known[np.searchsorted(known[:-1], hashes)] == hashes
        shares[split] = float(found.any(axis=1).mean())
    return shares


def _windows(text: bytes) -> NDArray[np.uint8]:
    """Return the block that begins at each byte of a text. After its end are zeros."""
    return sliding_window_view(np.frombuffer(text + bytes(_BLOCK - 1), np.uint8), _BLOCK)


def _hashes(blocks: NDArray[np.uint8]) -> NDArray[np.uint64]:
    hashes = np.zeros(blocks.shape[:-1], np.uint64)
    for eight_bytes in np.moveaxis(np.ascontiguousarray(blocks).view(np.uint64), -1, 0):
        hashes = (hashes ^ eight_bytes) * _FACTOR
        hashes ^= hashes >> np.uint64(32)
    return hashes


_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
"""Odd, with bits in no order."""


def _warn_of_cleaning(raw: bytes, dropped: float) -> list[str]:
    warnings = []
    if dropped > _LARGE_SHARE:
        warnings.append(
            f"cleaning drops {dropped:.0%} of the characters that are not blank: "
            "make preset NAME=raw_text keeps them"
        )
    if _GUTENBERG.search(raw[:_SEARCHED]) or _GUTENBERG.search(raw[-_SEARCHED:]):
        warnings.append(
            "the text has Project Gutenberg's header or license, before its line '*** START OF' "
            "and after '*** END OF': remove them, or models learn from one and are scored on the "
            "other"
        )
    return warnings


def _warn_of_splits(sizes: Mapping[str, TextSize], repeated: Mapping[str, float]) -> list[str]:
    return [
        f"the {split} split has only {count_noun(size.characters, 'character')}: differences "
        "between models are uncertain; use a longer text"
        for split, size in sizes.items()
        if size.characters < _FEW_CHARACTERS
    ] + [
        f"{share:.0%} of the {split} split are passages that the training split has too: models "
        "are rewarded for memorizing them"
        for split, share in repeated.items()
        if share > _LARGE_SHARE
    ]
