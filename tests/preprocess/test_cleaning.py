"""Decoding, cleaning and splitting: examples, and any text as plain Python treats it, wherever blocks of a file end."""

import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference
from seqlm.core.errors import DataError
from seqlm.core.text import TextSize, count_text, text_blocks
from seqlm.preprocess.cleaning import DecodingReport, RawText, clean_blocks, clean_text, composed
from seqlm.preprocess.preparing import clean_and_split, split_text

# Letters, spaces, all that ends lines or looks as if it did, characters of two, three and four bytes; marks and parts
# of Korean syllables, which compose with the character before them.
TRICKY = "aBz \t\n\r\x0b\x85\xa0é\u0301\u0323\u1100\u1161\u11a8\uac00ж漢字\u3000\u2028\ufeff\ufffd😀-0"
texts = st.text(alphabet=TRICKY, max_size=80) | st.text(max_size=80)
broken = st.lists(
    texts.map(str.encode)
    | st.binary(max_size=6)
    | st.sampled_from([b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\xed\xa0\x80"])
).map(b"".join)
block_sizes = st.integers(1, 9) | st.just(1 << 20)
FRACTIONS = {"train": 0.8, "val": 0.1, "test": 0.1}


@contextmanager
def file_of(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content)
        yield path


def cleaned(path: Path, normalise: str, errors: str, block_bytes: int = 1 << 20) -> tuple[str, DecodingReport]:
    report = DecodingReport()
    blocks = list(clean_blocks(RawText(path, "mine.txt"), normalise, errors, report, block_bytes))
    return b"".join(blocks).decode(), report


@given(
    broken | texts.map(str.encode),
    st.sampled_from(["letters", "none"]),
    st.sampled_from(["strict", "replace"]),
    block_sizes,
)
@example("\ufeffab\r".encode(), "letters", "strict", 1)
@example(b"\xef\xbb\xbfab\r\n\r\ncd\r\n", "none", "strict", 3)
@example(b"a \r\n b\r\r\nc", "letters", "strict", 2)
@example(b"\xe2\x82", "none", "replace", 1)
@example(b"a\xffb\xfe\xe9c", "none", "replace", 3)
@example(b"\xf0\x9f\x98a\r", "none", "replace", 2)
@example(b"\r\xe2\x82\xac\r", "none", "strict", 2)
@example("\ufffd".encode() + b"\xef\xbf", "none", "replace", 1)
@example(b"x\x00\xff", "none", "strict", 3)
@example(b"ab\xe2\x82", "letters", "strict", 3)
@example("hello".encode("utf-16"), "letters", "strict", 3)
@example("ab жé 12 ß".encode(), "letters", "strict", 3)
def test_bytes_are_cleaned_as_in_plain_python(content: bytes, normalise: str, errors: str, block_bytes: int) -> None:
    with file_of(content) as path:
        try:
            expected, report = reference.clean(content, normalise, errors)
        except DataError as error:
            with pytest.raises(DataError, match=f"(?:{error})(?!\\d)"):
                cleaned(path, normalise, errors, block_bytes)
            return
        text, found = cleaned(path, normalise, errors, block_bytes)
    assert text == expected
    assert vars(found) == vars(report)


def test_cleaning_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(b"  The Time Machine, by H. G. Wells [1898]\n\n -2- \nthree")
    assert cleaned(path, "letters", "strict", 3)[0] == "the time machine by h g wells\n\n\nthree\n"
    path.write_bytes("ab жé 12 ß".encode())
    assert cleaned(path, "letters", "strict")[1] == DecodingReport(0, letters=5, foreign_letters=3)
    # 'é' has two bytes, so the broken byte is the sixth, at offset 5.
    path.write_bytes("abcé".encode() + b"\xffdef")
    with pytest.raises(DataError, match="not UTF-8 at byte 5"):
        cleaned(path, "letters", "strict", 3)


NFC = "l'été dernier à la rivière\n"


@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_accents_in_characters_of_their_own_make_no_difference(normalise: str, tmp_path: Path) -> None:
    found = []
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, NFC)
        (tmp_path / form).write_text(text)
        found += [cleaned(tmp_path / form, normalise, "strict", size) for size in (1, 2, 3, 1 << 20)]
        assert clean_text(text, normalise) == found[0][0].removesuffix("\n")
    assert all(each == found[0] for each in found)
    # Four of the 21 letters are dropped: é, é, à and è.
    assert found[0][1] == DecodingReport(0, letters=21, foreign_letters=4)
    assert found[0][0] == (NFC if normalise == "none" else "l t dernier la rivi re\n")


def test_characters_that_compose_with_one_before_them_wait_for_it() -> None:
    before = dict.fromkeys(range(0x300, 0x3000), "a") | dict.fromkeys(range(0x1160, 0x1200), "\u1100\uac00")
    for parts in (unicodedata.decomposition(chr(code)).split() for code in range(0x110000)):
        if len(parts) == 2 and not parts[0].startswith("<"):
            before[int(parts[1], 16)] = chr(int(parts[0], 16))
    nfc, num_found = partial(unicodedata.normalize, "NFC"), 0
    for code, bases in before.items():
        character = chr(code)
        if unicodedata.combining(character) or any(nfc(base + character) != base + nfc(character) for base in bases):
            num_found += 1
            assert list(composed(["x" + bases, character, "b"]))[-1] == "b", hex(code)
    assert num_found > 500
    # More marks than any letter has do not fill the memory.
    assert len(list(composed(["a" + "\u0301" * 900, "\u0301" * 900, "\u0301" * 900]))) > 1


def test_the_book_is_cleaned_as_in_the_book(book: Path, tmp_path: Path) -> None:
    path = tmp_path / "cleaned"
    path.write_text(cleaned(book, "letters", "strict", 10_000)[0])
    lines = path.read_text().splitlines()
    assert lines[0] == "the time machine by h g wells"
    assert lines[10].startswith("twinkled and his usually pale face")
    assert count_text(path, 10_000) == TextSize(lines=3221, characters=170_580, words=32_775)


def test_the_line_of_an_error_is_found_across_blocks(tmp_path: Path) -> None:
    raw = tmp_path / "corpus.txt"
    raw.write_bytes(b"ab\r\n" * 600_000 + b"\xff")  # 4 bytes a line
    with pytest.raises(DataError, match="line 600001: not UTF-8 at byte 2400000"):
        cleaned(raw, "none", "strict")


def test_replacing_takes_time_in_proportion_to_the_text(tmp_path: Path) -> None:
    """In a megabyte of cp1251 nearly every byte is replaced; replacing each by itself took 16 seconds."""
    raw = tmp_path / "corpus.txt"
    raw.write_bytes(("прилив ушёл\n" * 90_000).encode("cp1251"))
    start = time.process_time()
    text, report = cleaned(raw, "none", "replace")
    assert time.process_time() - start < 2
    # Each line has 10 letters, none of which begins a character with the letter after it.
    assert report.replaced == text.count("\N{REPLACEMENT CHARACTER}") == 900_000


@given(texts, block_sizes)
def test_a_text_is_counted_and_read_as_in_plain_python(text: str, block_bytes: int) -> None:
    with file_of(text.encode()) as path:
        assert count_text(path, block_bytes) == TextSize(*reference.count(text))
        assert "".join(text_blocks(path, block_bytes)) == text


lines = st.lists(st.sampled_from(["", "a", "bc d", "漢字 é", "efg hij klm", "no\u3000space", " "]), max_size=40)
fractions = st.sampled_from(
    [FRACTIONS, {"train": 0.34, "val": 0.33, "test": 0.33}, {"train": 0.05, "val": 0.05, "test": 0.9}]
)


@given(lines.map("\n".join).filter(len) | lines.map(" ".join).filter(len), fractions)
@example("abc\n" * 100, FRACTIONS)  # the cuts at 0.8 and 0.9 of 400 bytes fall on the ends of lines 80 and 90
@example(" ".join(["abcd"] * 20) + "\n", FRACTIONS)  # the spaces at 79 and 89 of 100 bytes become line ends
def test_a_text_is_split_as_in_plain_python(text: str, shares: dict[str, float]) -> None:
    with file_of(text.encode()) as path:
        targets = {name: path.with_name(name) for name in shares}
        try:
            expected = reference.split(text, shares)
        except DataError:
            with pytest.raises(DataError, match="too few line ends and spaces"):
                split_text(path, targets, shares)
            return
        split_text(path, targets, shares)
        assert {name: target.read_bytes().decode() for name, target in targets.items()} == expected
        assert not path.exists()


@pytest.mark.parametrize("normalise", ["letters", "none"])
def test_a_text_of_many_blocks_is_prepared_as_in_plain_python(normalise: str, root: Path, tmp_path: Path) -> None:
    """Two megabytes of natural text in two scripts, in the blocks that the stage reads."""
    sample = (root / "data" / "sample.txt").read_text(encoding="utf-8")
    foreign = "# 語言模型 ![圖](圖.png)\r\n\r\n- 第一行，*沒有*空格。\n- второе слово `code`\n\n"
    content = ((sample[:5000] + foreign * 30) * 250).encode()
    raw = tmp_path / "raw.txt"
    raw.write_bytes(content)
    result = clean_and_split(RawText(raw, "raw.txt"), tmp_path / "text", normalise, "strict", FRACTIONS)
    expected, report = reference.clean(content, normalise, "strict")
    assert vars(result.decoding) == vars(report)
    for name, part in reference.split(expected, FRACTIONS).items():
        assert (tmp_path / "text" / f"{name}.txt").read_bytes() == part.encode()
        assert result.sizes[name] == TextSize(*reference.count(part))
