"""Reading and counting of cleaned text, in bounded memory.

A *cleaned line* is the unit: its characters are the line itself, its words are what single
spaces part. Text is read in blocks of a file, so that neither the length of the text nor
the length of a line matters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seqlm.core.errors import DataError

BLOCK_BYTES = 1 << 20


def words(line: str) -> list[str]:
    """Return the words of a cleaned line: what spaces part."""
    return [word for word in line.split(" ") if word]


def read_first_lines(path: Path, limit: int) -> Iterator[str]:
    """Yield the first lines of a text file that this pipeline wrote, at most a block of text in all."""
    lines = next(text_blocks(path), "").split("\n")
    yield from lines[:limit]


@dataclass(frozen=True)
class Counts:
    """Size of a text: lines, characters (line ends not counted) and words."""

    lines: int
    characters: int
    words: int


def text_blocks(path: Path) -> Iterator[str]:
    """Yield a text file that this pipeline wrote in blocks. Raises DataError where it is missing or broken."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while block := file.read(BLOCK_BYTES):
                yield block
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file: run the stage that writes it") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: it was not written by this pipeline") from error


def count_text(path: Path) -> Counts:
    """Return the size of a text file whose lines all end in ``\\n``."""
    lines = characters = num_words = 0
    in_word = False
    for block in text_blocks(path):
        ends = block.count("\n")
        lines += ends
        characters += len(block) - ends
        num_words += len(words(block.replace("\n", " ")))
        # A word that a block border cuts was counted on both sides.
        num_words -= in_word and block[0] not in " \n"
        in_word = block[-1] not in " \n"
    return Counts(lines, characters, num_words)
