"""Decoding, cleaning and splitting: examples, and any text as plain Python treats it."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import DataError
from seqlm.core.text import TextSize
from seqlm.preprocess import cleaning
from seqlm.preprocess.cleaning import Letters, clean_and_split, clean_text, read_raw, split_text

# Letters, spaces, all that ends lines or looks as if it did, characters of two, three and four bytes; marks and parts
# of Korean syllables, which compose with the character before them.
TRICKY = "aBz \t\n\r\x0b\x85\xa0é\u0301\u0323\u1100\u1161\u11a8\uac00ж漢字\u3000\u2028\ufeff\ufffd😀-0"
texts = st.text(alphabet=TRICKY, max_size=80) | st.text(max_size=80)
broken = st.lists(
    texts.map(str.encode)
    | st.binary(max_size=6)
    | st.sampled_from([b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\xed\xa0\x80"])
).map(b"".join)
FRACTIONS = {"train": 0.8, "val": 0.1, "test": 0.1}


def cleaned(content: bytes, normalise: str) -> tuple[str, Letters]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content)
        raw = read_raw(path, "mine.txt")
    return clean_text(raw.decode(), normalise), Letters.of(raw)


@given(broken | texts.map(str.encode), st.sampled_from(["letters", "none"]), st.booleans())
@example("\ufeffab\r".encode(), "letters", True)
@example(b"\xef\xbb\xbfab\r\n\r\ncd\r\n", "none", True)
@example(b"a \r\n b\r\r\nc", "letters", True)
@example(b"x\x00\xff", "none", True)
@example(b"\xef\xbb\xbfab\xe2\x82", "letters", True)
@example("ab жé 12 ß".encode(), "letters", False)
def test_bytes_are_cleaned_as_in_plain_python(content: bytes, normalise: str, by_line: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if by_line:
            patch.setattr(cleaning, "_BLOCKS", re.compile(rb"(?s).[^\n]*\n?"))
        try:
            expected, letters, foreign = reference.clean(content, normalise)
        except DataError as error:
            with pytest.raises(DataError, match=f"(?:{error})(?!\\d)"):
                cleaned(content, normalise)
            return
        assert cleaned(content, normalise) == (expected.removesuffix("\n"), Letters(letters, foreign))


def test_cleaning_by_hand() -> None:
    content = b"  The Time Machine, by H. G. Wells [1898]\n\n -2- \nthree"
    assert cleaned(content, "letters")[0] == "the time machine by h g wells\n\n\nthree"
    assert cleaned("ab жé 12 ß".encode(), "letters")[1] == Letters(letters=5, foreign_letters=3)
    # 'é' has two bytes, so the broken byte is the sixth, at offset 5.
    with pytest.raises(DataError, match="line 1: not UTF-8 at byte 5"):
        cleaned("abcé".encode() + b"\xffdef", "letters")
    with pytest.raises(DataError, match="line 4: not UTF-8 at byte 9"):
        cleaned(b"a\nb\r\nc\rde\xff", "letters")


def test_the_book_is_cleaned_as_in_the_book(book: Path) -> None:
    text = cleaned(book.read_bytes(), "letters")[0]
    lines = text.split("\n")
    assert lines[0] == "the time machine by h g wells"
    assert lines[10].startswith("twinkled and his usually pale face")
    assert TextSize.of(f"{text}\n".encode()) == TextSize(lines=3221, characters=170_580, words=32_775)


@given(texts)
def test_a_text_is_counted_as_in_plain_python(text: str) -> None:
    text += "\n"
    assert TextSize.of(text.encode()) == TextSize(*reference.count(text))


lines = st.lists(st.sampled_from(["", "a", "bc d", "漢字 é", "efg hij klm", "no\u3000space", " "]), max_size=40)
fractions = st.sampled_from(
    [FRACTIONS, {"train": 0.34, "val": 0.33, "test": 0.33}, {"train": 0.05, "val": 0.05, "test": 0.9}]
)


@given(lines.map("\n".join).filter(len) | lines.map(" ".join).filter(len), fractions)
@example("abc\n" * 100, FRACTIONS)  # the cuts at 0.8 and 0.9 of 400 bytes fall on the ends of lines 80 and 90
@example(" ".join(["abcd"] * 20) + "\n", FRACTIONS)  # the spaces at 79 and 89 of 100 bytes become line ends
def test_a_text_is_split_as_in_plain_python(text: str, shares: dict[str, float]) -> None:
    try:
        expected = reference.split(text, shares)
    except DataError:
        with pytest.raises(DataError, match="too few line ends and spaces"):
            split_text(text.encode(), shares)
        return
    assert {name: part.decode() for name, part in split_text(text.encode(), shares).items()} == expected


@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_a_long_text_is_prepared_as_in_plain_python(normalise: str, root: Path, tmp_path: Path) -> None:
    """A megabyte of natural text in three scripts."""
    sample = (root / "data" / "sample.txt").read_text(encoding="utf-8")
    foreign = "# 語言模型 ![圖](圖.png)\r\n\r\n- 第一行，*沒有*空格。\n- второе слово `code`\n\n"
    content = ((sample[:5000] + foreign * 5) * 200).encode()
    raw = tmp_path / "raw.txt"
    raw.write_bytes(content)
    result = clean_and_split(raw, "raw.txt", tmp_path / "text", normalise, FRACTIONS)
    expected, *letters = reference.clean(content, normalise)
    assert result.letters == Letters(*letters)
    for name, part in reference.split(expected, FRACTIONS).items():
        assert (tmp_path / "text" / f"{name}.txt").read_bytes() == part.encode()
        assert result.sizes[name] == TextSize(*reference.count(part))
