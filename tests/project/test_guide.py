"""The guide to chapter 8: nothing of the chapter is missing, and every exercise has an answer."""

import re
from pathlib import Path

import pytest

from pages import commands
from smoke import ROOT

GUIDE = ROOT / "docs" / "guide"
SECTIONS = sorted(GUIDE.glob("8-*.md"))
# How many numbered equations each section has: 41 in all.
EQUATIONS = {1: 6, 3: 8, 4: 8, 5: 3, 7: 16}
EXERCISES = {1: 4, 2: 2, 3: 6, 4: 4, 5: 6, 6: 3, 7: 2}


def test_every_equation_is_on_the_page_of_its_section() -> None:
    for number, page in enumerate(SECTIONS, start=1):
        found = re.findall(r"\\tag\{8\.(\d)\.(\d+)\}", page.read_text())
        expected = [(str(number), str(place + 1)) for place in range(EQUATIONS.get(number, 0))]
        assert found == expected, page.name
    assert sum(EQUATIONS.values()) == 41


def test_every_figure_is_drawn_or_missed_for_a_reason() -> None:
    index = (GUIDE / "index.md").read_text()
    assert re.findall(r"^\| (8\.\d\.\d) ", index, flags=re.MULTILINE) == [
        "8.1.1", "8.1.2", "8.3.1", "8.4.1", "8.4.2", "8.7.1", "8.7.2",
    ]  # fmt: skip


@pytest.mark.parametrize("page", SECTIONS, ids=lambda page: page.stem)
def test_a_page_asks_shows_code_and_has_a_command_with_its_minutes(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem[:3].replace('-', '.')} ")
    assert "> **Before you run.**" in text
    assert "<!-- code: " in text
    command = re.search(r"^(?:One|Two|Three) minutes?: `(dvc exp run -S [^`]+)`", text, flags=re.MULTILINE)
    assert command, "no command with its minutes"
    assert any("exp run" in known for known in commands())
    assert f"]({page.name})" in (GUIDE / "index.md").read_text()


def labels(name: str) -> list[str]:
    """Return the exercises of a page, such as 8.1-1 A, in their order."""
    found, current = [], ""
    for number, letter, alone in re.findall(
        r"^\*\*(8\.\d-\d)(?: ([A-D]))?\.\*\*|^- \*\*([A-D])\.\*\*", (ROOT / "docs" / name).read_text(), re.MULTILINE
    ):
        current = number or current
        found.append(f"{current} {letter or alone}".strip())
    return found


def test_every_exercise_has_an_answer_and_no_exercise_is_missing() -> None:
    exercises, answers = labels("exercises.md"), labels("answers.md")
    numbers = list(dict.fromkeys(label.split()[0] for label in exercises))
    assert numbers == [f"8.{section}-{place + 1}" for section, count in EXERCISES.items() for place in range(count)]
    # An exercise with parts has an answer for each part.
    parts = {label.split()[0] for label in exercises if " " in label}
    assert answers == [label for label in exercises if " " in label or label not in parts]
