"""README and docs: links, files, and the guide."""

import re
from pathlib import Path

import pytest

from pages import PAGES
from smoke import ROOT

GUIDE = ROOT / "docs" / "guide"
SECTIONS = sorted(GUIDE.glob("8-*.md"))
# How many numbered equations and exercises each section of the chapter has.
EQUATIONS = {1: 6, 3: 8, 4: 8, 5: 3, 7: 16}
EXERCISES = {1: 4, 2: 2, 3: 6, 4: 4, 5: 6, 6: 3, 7: 2}
MADE = ("reports/playground.html", "data/work/")  # by the pipeline, and not in Git


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


@pytest.mark.parametrize(
    ("number", "page"), list(enumerate(SECTIONS, start=1)), ids=lambda value: getattr(value, "stem", "")
)
def test_a_page_has_the_equations_of_its_section_and_an_experiment(number: int, page: Path) -> None:
    text = page.read_text()
    expected = [f"8.{number}.{place + 1}" for place in range(EQUATIONS.get(number, 0))]
    assert re.findall(r"\\tag\{(8\.\d\.\d+)\}", text) == expected
    # The answer comes before the experiment, whose results would give it away, and the way back comes last.
    steps = (
        r"> \*\*Guess first\.\*\* .*?^(?:\*\*Answer\.\*\*|##+ Answer).*?"
        r"^(?:One|Two) minutes?: `dvc exp run -S [^`]+`(?:(?!<details>).)*?`make restore` goes back\.\n\n"
        r"<details>\n<summary>What you should see</summary>"
    )
    assert re.search(steps, text, flags=re.MULTILINE | re.DOTALL)


PROGRAM = re.compile(r"(?<! -->\n)^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
PROGRAMS = [
    (page, *found.groups())
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
    numbers = re.findall(r"^\*\*(8\.\d-\d)\.\*\* \*\((?:easy|medium|hard), \d+ minutes\)\*", asked, re.MULTILINE)
    assert numbers == [f"8.{section}-{place + 1}" for section, count in EXERCISES.items() for place in range(count)]
    # An exercise with parts has an answer for each part.
    parts = [
        len(re.findall(r"^- \*\*[A-D]\.\*\*", part, re.MULTILINE))
        for part in re.split(r"^\*\*8\.", asked, flags=re.M)[1:]
    ]
    expected = [
        f"{number} {'ABCD'[part]}" if count else number
        for number, count in zip(numbers, parts, strict=True)
        for part in range(max(count, 1))
    ]
    assert re.findall(r"^\*\*(8\.\d-\d(?: [A-D])?)\.\*\*", answered, re.MULTILINE) == expected
