"""README and docs: links, files, and the guide."""

import re
from pathlib import Path

import pytest

from documented_commands import PAGES
from smoke import ROOT

GUIDE = ROOT / "docs" / "guide"
SECTIONS = sorted(GUIDE.glob("8-*.md"))
MADE = ("reports/playground.html", "data/models/ngrams/")  # by the pipeline, and not in Git


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_file_and_target_of_make_exists(page: Path) -> None:
    text, dead = page.read_text(), []
    for target in re.findall(r"\]\(([^)\s]+)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if target.startswith(("http", "../../actions/")):  # of GitHub
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())):
            dead.append(target)
    folders = r"(?:src|tests|docs|stages|benchmarks|reports|presets|tools)/[^`*\sN]+"
    dead += [name for name in re.findall(rf"`({folders})`", text) if not (ROOT / name).exists() and name not in MADE]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    dead += set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) - set(targets)
    assert not dead


PROGRAM = re.compile(r"(?<! -->\n)^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
TRAINING = ("8-5", "8-6")
"""Sections whose programs train networks."""
PROGRAMS = [
    pytest.param(page, *found.groups(), marks=[pytest.mark.slow] if page.stem.startswith(TRAINING) else [])
    for page in [*SECTIONS, ROOT / "docs/answers.md"]
    for found in PROGRAM.finditer(page.read_text())
]


@pytest.mark.parametrize(("page", "program", "printed"), PROGRAMS, ids=lambda value: getattr(value, "stem", ""))
def test_code_of_the_guide_runs_alone_and_prints_what_the_page_says(
    page: Path, program: str, printed: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(program, page, "exec"), {})
    assert printed in (None, capsys.readouterr().out)


def test_every_exercise_has_an_answer() -> None:
    asked, answered = ((ROOT / "docs" / name).read_text() for name in ("exercises.md", "answers.md"))
    numbers = re.findall(r"^\*\*(8\.\d-\d)\.\*\*", asked, re.MULTILINE)
    assert len(numbers) == len(set(numbers)) == 27  # of the chapter
    assert list(dict.fromkeys(re.findall(r"^\*\*(8\.\d-\d)[ .]", answered, re.MULTILINE))) == numbers
