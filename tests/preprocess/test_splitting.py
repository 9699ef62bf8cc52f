"""Splitting in order, at line ends or spaces, by small examples; ``test_against_reference.py`` tries any text."""

from pathlib import Path

from seqlm.core.text import words
from seqlm.preprocess.preparing import split_text


def split(content: str, tmp_path: Path) -> list[str]:
    source = tmp_path / "cleaned"
    source.write_text(content)
    targets = {name: tmp_path / name for name in ("train", "val", "test")}
    split_text(source, targets, {"train": 0.8, "val": 0.1, "test": 0.1}, len(content), block_bytes=3)
    return [target.read_text() for target in targets.values()]


def test_splits_are_cut_at_the_nearest_line_ends(tmp_path: Path) -> None:
    # 100 lines of 4 characters, so the cuts at 0.8 and 0.9 of 400 fall on line ends 80 and 90.
    train, val, test = split("abc\n" * 100, tmp_path)
    assert [len(part) // 4 for part in (train, val, test)] == [80, 10, 10]


def test_a_text_of_one_line_is_split_at_spaces(tmp_path: Path) -> None:
    # 20 words and 19 spaces are 99 characters and a line end; the spaces at 79 and 89
    # are nearest to 80 and 90, and become line ends.
    train, val, test = split(" ".join(["abcd"] * 20) + "\n", tmp_path)
    assert [words(part.strip()) for part in (train, val, test)] == [["abcd"] * 16, ["abcd"] * 2, ["abcd"] * 2]
    assert all(part.endswith("\n") and not part.endswith(" \n") for part in (train, val, test))
