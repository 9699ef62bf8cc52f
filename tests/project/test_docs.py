"""README, docs and committed results: the site, named files, the guide, and what is taken from results and code."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import doc_values
from default_params import skip_if_experiment_is_applied
from smoke import ROOT, environment_of_python

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECTIONS = sorted((ROOT / "docs" / "guide").glob("8-*.md"))
MADE = ("reports/playground.html", "data/models/ngrams/")  # by the pipeline, and not in Git


def build_site(pages: Path, site: Path) -> tuple[int, str]:
    """Build the site of a folder of pages, as `make docs` does; return the exit code and the warnings."""
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-c", str(ROOT / "docs")]
    command = [sys.executable, "-m", "sphinx", *options, str(pages), str(site)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    assert build_site(ROOT, tmp_path) == (0, "")
    page, table = ((tmp_path / name).read_text() for name in ("docs/tutorial.html", "reports/evaluate/table.csv.html"))
    rows = re.findall(r'href="../reports/evaluate/table\.csv\.html#(row-\d+)">1\.90<', page)
    assert rows == ["row-0"]
    assert re.search(r'<tr id="row-0"><td>lstm\+char-by-word-kneser-ney-3</td>', table)
    assert "seqlm.fit_network" in (tmp_path / "docs/reference/python.html").read_text()


def test_a_dead_link_is_a_warning_of_the_site(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    shutil.copytree(ROOT / "docs/_static", pages / "docs/_static")
    (pages / "README.md").write_text("# A\n\n[a](none.md) [b](none.py) [c](#none) [d](docs/_static/site.css)\n")
    code, warnings = build_site(pages, tmp_path / "site")
    assert code == 1
    for target in ("none.md", "none.py", "'none'"):
        assert target in warnings
    assert "site.css" not in warnings


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_named_file_and_target_of_make_exists(page: Path) -> None:
    text = page.read_text()
    folders = r"(?:src|tests|docs|stages|benchmarks|reports|presets|tools)/[^`*\sN]+"
    dead = [name for name in re.findall(rf"`({folders})`", text) if not (ROOT / name).exists() and name not in MADE]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    dead += set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) - set(targets)
    assert not dead


PROGRAM = re.compile(r"(?<! -->\n)^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
TRAINING = ("8-5", "8-6", "README")
"""Pages whose programs train networks."""
PROGRAMS = [
    pytest.param(page, *found.groups(), marks=[pytest.mark.slow] if page.stem.startswith(TRAINING) else [])
    for page in [*SECTIONS, ROOT / "README.md"]
    for found in PROGRAM.finditer(page.read_text())
]


@pytest.mark.parametrize(("page", "program", "printed"), PROGRAMS, ids=lambda value: getattr(value, "stem", ""))
def test_code_of_a_page_runs_alone_and_prints_what_the_page_shows(
    page: Path, program: str, printed: str | None, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, page, "exec"), {})
    assert printed in (None, capsys.readouterr().out)


def test_every_exercise_has_an_answer() -> None:
    pages = [page.read_text() for page in SECTIONS if page.stem.endswith("exercises")]
    asked = [part for page in pages for part in re.split(r"^(?=\*\*8)", page, flags=re.MULTILINE)[1:]]
    numbers = [match[1] for exercise in asked if (match := re.match(r"\*\*(8\.\d-\d)\.\*\*", exercise))]
    assert len(numbers) == len(set(numbers)) == 27  # of the chapter
    assert all("<summary>Answer</summary>" in exercise for exercise in asked)


@pytest.mark.parametrize("page", doc_values.PAGES, ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    skip_if_experiment_is_applied()
    text = page.read_text(encoding="utf-8")
    assert doc_values.filled(page) == text, "`python tools/doc_values.py` would write it again"


def test_each_column_of_each_table_is_documented() -> None:
    text = (ROOT / "docs/reference/tables.md").read_text(encoding="utf-8")
    items = {
        path: item
        for item in re.split(r"\n(?=- `reports|`reports|## )", text)
        for path in re.findall(r"`(reports\S+csv)`", item[:90])
    }
    for path in set(ROOT.glob("reports/**/*.csv")) - {ROOT / "reports/evaluate/table.csv"}:  # generated from COLUMNS
        name = path.relative_to(ROOT).as_posix()
        name = re.sub(r"train/[^/]+/", "evaluate/", re.sub(r"/(char|word|subword)/", "/KIND/", name))
        with path.open(encoding="utf-8", newline="") as file:
            columns = {re.sub(r"^ahead_\d+$", "ahead_K", column) for column in next(csv.reader(file))}
        assert columns <= set(re.findall(r"`(\w+)`", items[name])), name


def test_no_machine_path_is_committed() -> None:
    paths = (b"/home/", f"{Path.home()}/".encode())
    reports = [path for path in (ROOT / "reports").rglob("*") if path.is_file()]
    assert [path for path in reports if any(word in path.read_bytes() for word in paths)] == []


@pytest.mark.slow
def test_dvc_draws_the_tables_with_titles_on_their_axes(tmp_path: Path) -> None:
    command = ["dvc", "plots", "show", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=environment_of_python(), capture_output=True, check=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    drawn = [json.loads(found) for found in re.findall(r"var spec = (\{.+\});$", page, re.MULTILINE)]
    assert len(drawn) > 20
    for chart in drawn:
        assert "/" not in chart["title"]
        # The axes of a layered chart are those of its layers, too.
        encoding = chart["encoding"] | (chart["layer"][0]["encoding"] if "layer" in chart else {})
        assert encoding["x"]["title"] not in ("", "x", "step"), chart["title"]
