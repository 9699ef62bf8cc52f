"""Fonts for figures of text in other scripts."""

import shutil
from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager

from seqlm.report.figures import style as figure_style
from seqlm.report.figures.book import partition_figure, unrolled_figure
from seqlm.report.figures.gradients import graph_figure, strategies_figure
from seqlm.report.figures.style import MISSING_GLYPH, USUAL, InstalledFonts, families_for, svg_text, without_font

FIGURES = {
    "partition": lambda text: partition_figure(text),
    "unrolled": lambda text: unrolled_figure(text),
    "strategies": lambda text: strategies_figure(text),
    "graph": lambda text: graph_figure([text[:1], text[1:3], "a$b", text]),
}


def write_font(path: Path, name: str, characters: str, weight: int = 400) -> None:
    """Write a font whose glyphs are all the same square."""
    pen = TTGlyphPen(None)
    for step, corner in enumerate([(0, 0), (0, 500), (500, 500), (500, 0)]):
        (pen.lineTo if step else pen.moveTo)(corner)
    pen.closePath()
    names = [".notdef", *(f"u{ord(character):x}" for character in characters)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(character): f"u{ord(character):x}" for character in characters})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=weight)
    builder.setupPost()
    builder.save(path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install matplotlib's own fonts and three more, whatever fonts this machine has."""
    own = str(Path(mpl.get_data_path()))
    monkeypatch.setattr(fontManager, "ttflist", [entry for entry in fontManager.ttflist if entry.fname.startswith(own)])
    monkeypatch.setattr(figure_style, "FONTS", InstalledFonts(list))
    for name, characters in (("Few Of Them", "海"), ("Most Of Them", "海水来"), ("Last Resort", "海水来了")):
        write_font(tmp_path / f"{name}.ttf", name, characters)
        fontManager.addfont(tmp_path / f"{name}.ttf")


@pytest.mark.usefixtures("installed")
def test_the_font_with_most_characters_is_chosen_unless_the_usual_one_has_them_all() -> None:
    assert families_for("the sea, море \n\t\u3000") == [USUAL]
    assert families_for("海 sea") == [USUAL, "Few Of Them"]
    assert families_for("海水来了") == [USUAL, "Most Of Them"]
    # A font that shows a box for every character does not count.
    assert without_font("海水来了了 sea") == "了"
    assert without_font("sea\n") == ""


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_a_dot_for_characters_that_no_font_has(name: str, recwarn: pytest.WarningsRecorder) -> None:
    drawn = svg_text(FIGURES[name]("海水来了 sea\u3000"))
    assert not recwarn.list
    assert "Most Of Them" in drawn
    assert "海" in drawn
    assert "了" not in drawn
    assert MISSING_GLYPH in drawn


@pytest.mark.usefixtures("installed")
def test_a_font_that_was_removed_is_skipped(tmp_path: Path) -> None:
    shutil.move(tmp_path / "Most Of Them.ttf", tmp_path / "gone.ttf")
    assert families_for("海水") == [USUAL, "Few Of Them"]
    assert without_font("海水") == "水"


@pytest.mark.usefixtures("installed")
def test_a_newly_installed_font_is_found_and_a_broken_one_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_font(tmp_path / "new.ttf", "New", "了")
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    paths = [str(tmp_path / name) for name in ("broken.ttf", "new.ttf")]
    monkeypatch.setattr(figure_style, "FONTS", InstalledFonts(lambda: paths))
    assert families_for("海了") == [USUAL, "Few Of Them", "New"]


@pytest.mark.usefixtures("installed")
def test_a_font_of_another_weight_is_used_without_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_font(tmp_path / "medium.ttf", "Medium Alone", "潮", weight=500)
    fontManager.addfont(tmp_path / "medium.ttf")
    assert "Medium Alone" in svg_text(unrolled_figure("潮 sea"))
    assert caplog.messages == []
