"""Decoding, cleaning and splitting, by small examples; ``test_against_reference.py`` tries any text."""

import time
from pathlib import Path

import pytest

from seqlm.core.errors import DataError
from seqlm.core.text import TextSize, count_text, words
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks
from seqlm.preprocess.preparing import split_text

BLOCK_BYTES = 3
"""Results may not depend on where blocks of a file begin: these end inside everything."""


def cleaned(content: bytes, tmp_path: Path, normalise: str = "letters", errors: str = "strict") -> str:
    return clean(content, tmp_path, normalise, errors)[0]


def clean(content: bytes, tmp_path: Path, normalise: str, errors: str) -> tuple[str, DecodingReport]:
    source, report = tmp_path / "source", DecodingReport()
    source.write_bytes(content)
    blocks = clean_blocks(RawText(source, "mine.txt"), normalise, errors, report, BLOCK_BYTES)
    return b"".join(blocks).decode(), report


def test_lines_keep_only_letters_and_single_spaces_and_empty_lines_stay(tmp_path: Path) -> None:
    text = b"  The Time Machine, by H. G. Wells [1898]\n\n -2- \nthree"
    assert cleaned(text, tmp_path) == "the time machine by h g wells\n\n\nthree\n"


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_line_ends_and_byte_order_marks_do_not_change_results(
    ends: bytes, mark: bytes, normalise: str, tmp_path: Path
) -> None:
    assert cleaned(mark + ends.join([b"ab", b"", b"cd", b""]), tmp_path, normalise) == "ab\n\ncd\n"


def test_what_is_not_utf8_is_named_by_its_offset(tmp_path: Path) -> None:
    for content, complaint in (
        # 'é' has two bytes, so the broken byte is the sixth, at offset 5.
        ("abcé".encode() + b"\xffdef", "not UTF-8 at byte 5"),
        (b"ab\xe2\x82", "not UTF-8 at byte 2"),  # a character cut off by the end of the file
        (b"ab\x00c", "NUL byte at byte 2"),
        ("hello".encode("utf-16"), "UTF-16"),
    ):
        with pytest.raises(DataError, match=complaint):
            cleaned(content, tmp_path)


def test_bytes_that_are_not_utf8_can_be_replaced_and_are_counted(tmp_path: Path) -> None:
    text, report = clean(b"a\xffb\xfe\xe9c", tmp_path, "none", "replace")
    assert text == "a\ufffdb\ufffd\ufffdc\n"
    assert report.replaced == 3


def test_letters_of_other_scripts_are_counted(tmp_path: Path) -> None:
    _, report = clean("ab жé 12 ß".encode(), tmp_path, "letters", "strict")
    assert report == DecodingReport(0, letters=5, foreign_letters=3)


def test_the_book_is_cleaned_as_in_the_book(book: Path, tmp_path: Path) -> None:
    path = tmp_path / "cleaned"
    path.write_bytes(b"".join(clean_blocks(RawText(book, "the book"), "letters", "strict", DecodingReport(), 10_000)))
    lines = path.read_text().splitlines()
    assert lines[0] == "the time machine by h g wells"
    assert lines[10].startswith("twinkled and his usually pale face")
    assert count_text(path, 10_000) == TextSize(lines=3221, characters=170_580, words=32_775)


def test_the_line_of_an_error_is_found_across_blocks(tmp_path: Path) -> None:
    raw = tmp_path / "corpus.txt"
    raw.write_bytes(b"ab\r\n" * 600_000 + b"\xff")  # 4 bytes a line
    with pytest.raises(DataError, match="line 600001: not UTF-8 at byte 2400000"):
        list(clean_blocks(RawText(raw, "x"), "none", "strict", DecodingReport()))


def test_replacing_takes_time_in_proportion_to_the_text(tmp_path: Path) -> None:
    """In a megabyte of cp1251 nearly every byte is replaced; replacing each by itself took 16 seconds."""
    raw, report = tmp_path / "corpus.txt", DecodingReport()
    raw.write_bytes(("прилив ушёл\n" * 90_000).encode("cp1251"))
    start = time.process_time()
    text = b"".join(clean_blocks(RawText(raw, "x"), "none", "replace", report)).decode()
    assert time.process_time() - start < 2
    # Each line has 10 letters, none of which begins a character with the letter after it.
    assert report.replaced == text.count("\N{REPLACEMENT CHARACTER}") == 900_000


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
