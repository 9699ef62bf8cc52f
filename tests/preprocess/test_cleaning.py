"""Decoding and cleaning."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import clean_line
from seqlm.core.errors import DataError
from seqlm.core.text import TextSize, count_text
from seqlm.preprocess.cleaning import clean_blocks
from seqlm.preprocess.decoding import DecodingReport, RawText

BLOCK_BYTES = 3
"""Results may not depend on where blocks of a file begin: these fall into the middle of everything."""


def cleaned(content: bytes, tmp_path: Path, normalise: str = "letters", errors: str = "strict") -> str:
    return clean(content, tmp_path, normalise, errors)[0]


def clean(content: bytes, tmp_path: Path, normalise: str, errors: str) -> tuple[str, DecodingReport]:
    source, report = tmp_path / "source", DecodingReport()
    source.write_bytes(content)
    blocks = clean_blocks(RawText(source, "mine.txt"), normalise, errors, report, BLOCK_BYTES)
    return b"".join(blocks).decode(), report


def test_a_line_keeps_only_letters_and_single_spaces() -> None:
    assert clean_line("  The Time Machine, by H. G. Wells [1898]\n") == "the time machine by h g wells"
    assert clean_line("1898") == ""


def test_lines_are_kept_empty_ones_too(tmp_path: Path) -> None:
    assert cleaned(b"One,\n\n -2- \nthree", tmp_path) == "one\n\n\nthree\n"


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_line_ends_and_byte_order_marks_do_not_change_results(
    ends: bytes, mark: bytes, normalise: str, tmp_path: Path
) -> None:
    assert cleaned(mark + ends.join([b"ab", b"", b"cd", b""]), tmp_path, normalise) == "ab\n\ncd\n"


def test_bytes_that_are_not_utf8_are_named_by_their_offset(tmp_path: Path) -> None:
    # 'é' is two bytes, so the broken byte is the sixth, at offset 5.
    with pytest.raises(DataError, match="not UTF-8 at byte 5"):
        cleaned("abcé".encode() + b"\xffdef", tmp_path)
    with pytest.raises(DataError, match="not UTF-8 at byte 2"):
        cleaned(b"ab\xe2\x82", tmp_path)  # a character cut off by the end of the file


def test_bytes_that_are_not_utf8_can_be_replaced_and_are_counted(tmp_path: Path) -> None:
    text, report = clean(b"a\xffb\xfe\xe9c", tmp_path, "none", "replace")
    assert text == "a\ufffdb\ufffd\ufffdc\n"
    assert report.replaced == 3


def test_other_encodings_are_called_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="NUL byte at byte 2"):
        cleaned(b"ab\x00c", tmp_path)


def test_utf16_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-16"):
        cleaned("hello".encode("utf-16"), tmp_path)


def test_letters_of_other_scripts_are_counted(tmp_path: Path) -> None:
    _, report = clean("ab жé 12 ß".encode(), tmp_path, "letters", "strict")
    assert report == DecodingReport(0, letters=5, foreign_letters=3)


@given(content=st.text(alphabet="aB é-\n\r", max_size=30))
def test_cleaning_blocks_equals_cleaning_lines(content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = cleaned(content.encode(), Path(folder))
    lines = re.split("\r\n|\r|\n", content)
    if lines[-1] == "":
        lines.pop()  # what stands behind the last line end is no line
    expected = "".join(clean_line(line) + "\n" for line in lines)
    # A last line without a line end that cleans to nothing may stay away: it holds no token.
    assert found == expected or found + "\n" == expected


def test_the_book_is_cleaned_as_in_the_book(book: Path, tmp_path: Path) -> None:
    path = tmp_path / "cleaned"
    path.write_bytes(b"".join(clean_blocks(RawText(book, "the book"), "letters", "strict", DecodingReport(), 10_000)))
    lines = path.read_text().splitlines()
    assert lines[0] == "the time machine by h g wells"
    assert lines[10].startswith("twinkled and his usually pale face")
    assert count_text(path, 10_000) == TextSize(lines=3221, characters=170_580, words=32_775)
