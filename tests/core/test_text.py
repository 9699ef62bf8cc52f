"""Words of a cleaned line, and sizes of a cleaned text."""

from pathlib import Path

import pytest

from seqlm.core import text
from seqlm.core.text import Counts, count_text, words


@pytest.fixture(params=[1, 3, 1 << 20], ids=["blocks of 1", "blocks of 3", "one block"], autouse=True)
def _block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results may not depend on where blocks of a file begin."""
    monkeypatch.setattr(text, "BLOCK_BYTES", request.param)


def test_words_are_what_spaces_part() -> None:
    assert words("") == []
    assert words("i came  back ") == ["i", "came", "back"]


def test_counts_of_a_small_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("the time\n\nmachine\n")
    # 8 + 0 + 7 characters; the line ends are none.
    assert count_text(path) == Counts(lines=3, characters=15, words=3)
