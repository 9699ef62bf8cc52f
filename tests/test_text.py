"""Cleaning, decoding, counting and splitting."""

import io
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlm import text
from seqlm.errors import DataError
from seqlm.text import DecodingReport, clean_file, clean_line, count_text, read_lines, split_text, words


@pytest.fixture(params=[1, 3, 1 << 20], ids=["blocks of 1", "blocks of 3", "one block"], autouse=True)
def _block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results may not depend on where blocks of a file begin."""
    monkeypatch.setattr(text, "BLOCK_BYTES", request.param)


def cleaned(content: bytes, tmp_path: Path, normalise: str = "letters", errors: str = "strict") -> str:
    source, target = tmp_path / "source", io.StringIO()
    source.write_bytes(content)
    clean_file(source, target, normalise, errors)
    return target.getvalue()


def test_a_line_keeps_only_letters_and_single_spaces() -> None:
    assert clean_line("  The Time Machine, by H. G. Wells [1898]\n") == "the time machine by h g wells"
    assert clean_line("1898") == ""


def test_words_are_what_spaces_part() -> None:
    assert words("") == []
    assert words("i came  back ") == ["i", "came", "back"]


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
    source, target = tmp_path / "source", io.StringIO()
    source.write_bytes(b"a\xffb\xfe\xe9c")
    report = clean_file(source, target, "none", "replace")
    assert target.getvalue() == "a\ufffdb\ufffd\ufffdc\n"
    assert report.replaced == 3


def test_other_encodings_are_called_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="NUL byte at byte 2"):
        cleaned(b"ab\x00c", tmp_path)


def test_utf16_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-16"):
        cleaned("hello".encode("utf-16"), tmp_path)


def test_letters_of_other_scripts_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("ab жé 12 ß", encoding="utf-8")
    assert clean_file(source, io.StringIO(), "letters", "strict") == DecodingReport(0, letters=5, foreign_letters=3)


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


def test_counts_of_a_small_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("the time\n\nmachine\n")
    # 8 + 0 + 7 characters; the line ends are none.
    assert count_text(path) == text.Counts(lines=3, characters=15, words=3)


def split(content: str, tmp_path: Path) -> list[str]:
    source = tmp_path / "cleaned"
    source.write_text(content)
    targets = {name: io.StringIO() for name in ("train", "val", "test")}
    split_text(source, targets, {"train": 0.8, "val": 0.1, "test": 0.1})
    return [target.getvalue() for target in targets.values()]


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


def test_a_text_that_cannot_be_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too few lines and words"):
        split("abcdefghijklmnopqrstuvwxyz\n", tmp_path)


@given(lines=st.lists(st.sampled_from(["", "a", "bc d", "efg hij klm"]), min_size=30, max_size=60))
def test_splits_joined_are_the_text(lines: list[str]) -> None:
    content = "".join(line + "\n" for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        try:
            parts = split(content, Path(folder))
        except DataError:
            return
    assert "".join(parts).replace("\n", " ") == content.replace("\n", " ")
    assert all(parts)


def test_the_book_is_cleaned_as_in_the_book(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", 10_000)
    path = tmp_path / "cleaned"
    with path.open("w") as target:
        clean_file(book, target, "letters", "strict")
    lines = read_lines(path)
    assert lines[0] == "the time machine by h g wells"
    assert lines[10].startswith("twinkled and his usually pale face")
    assert count_text(path) == text.Counts(lines=3221, characters=170_580, words=32_775)
