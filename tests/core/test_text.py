"""Words of a cleaned line, and sizes of a cleaned text."""

from pathlib import Path

from seqlm.core.text import TextSize, count_text, words


def test_words_are_what_spaces_part() -> None:
    assert words("") == []
    assert words("i came  back ") == ["i", "came", "back"]


def test_counts_of_a_small_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("the time\n\nmachine\n")
    # 8 + 0 + 7 characters; the line ends are none.
    for block_bytes in (1, 3, 1 << 20):
        assert count_text(path, block_bytes) == TextSize(lines=3, characters=15, words=3)
