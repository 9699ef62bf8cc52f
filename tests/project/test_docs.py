"""README and docs: commands, files, links, values, tables and the guide are right."""

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import doc_values
from default_params import PARAMS_FILE, skip_if_experiment_is_applied
from pages import PAGES, blocks, commands
from seqlm.configure.settings import check_values
from seqlm.core.errors import ParamsError
from seqlm.core.files import read_csv
from smoke import ROOT
from stages_by_hand import RunStage

GUIDE = ROOT / "docs" / "guide"
SECTIONS = sorted(GUIDE.glob("8-*.md"))
# How many numbered equations and exercises each section has.
EQUATIONS = {1: 6, 3: 8, 4: 8, 5: 3, 7: 16}
EXERCISES = {1: 4, 2: 2, 3: 6, 4: 4, 5: 6, 6: 3, 7: 2}
LINK = re.compile(r"!?\[(`?)([^\]]*?)`?\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
# Page, whether the link shows code, what it shows, target.
LINKS = [
    (page, bool(found[1]), found[2], found[3])
    for page in [*doc_values.pages(ROOT), ROOT / "CONTRIBUTING.md"]
    for found in LINK.finditer(page.read_text())
    # From the README, ../../ leads to other pages of the repository on GitHub.
    if not found[3].startswith(("http", "../../") if page == ROOT / "README.md" else "http")
]


def after_experiment(command: str) -> dict[str, object]:
    """Return the default settings as a ``dvc exp run`` command changes them."""
    yaml, words = YAML(typ="safe", pure=True), shlex.split(command)
    params = yaml.load(PARAMS_FILE)
    for word in (words[place + 1] for place, flag in enumerate(words) if flag == "-S"):
        if word.startswith("~"):  # a run that another experiment added
            continue
        name, _, value = word.partition("=")
        value = re.sub(r"^choice\(([^,]*),.*\)$", r"\1", value)  # the first value of a sweep
        *parents, key = name.lstrip("+").split(".")
        section = params
        for parent in parents:
            section = section[parent]
        # A new key needs a plus, an existing one must have none; two set a key whether it exists or not.
        assert name.startswith("++") or (key in section) != name.startswith("+"), word
        section[key] = yaml.load(value)
    return params  # type: ignore[no-any-return]


def test_every_experiment_has_settings_that_are_accepted() -> None:
    experiments = [command for command in commands() if command.startswith("dvc exp run") and "-S " in command]
    assert len(experiments) > 8
    refused = []
    for command in experiments:
        try:
            check_values(after_experiment(command), source=command)
        except (ParamsError, AssertionError) as error:
            refused.append(f"{command}: {error}")
    assert not refused, "\n".join(refused)


def test_the_readme_names_models_as_the_table_does_and_the_best_one_first() -> None:
    table = read_csv(ROOT / "reports" / "evaluate" / "table.csv").set_index("model")["label"]
    named = re.findall(r'^\| ([^|]+) \|.*"model=(\S+) ', (ROOT / "README.md").read_text(), re.MULTILINE)
    assert named == [(table[model], model) for _, model in named]
    assert named[0][1] == table.index[0]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_new_user_activates_the_environment_before_typing_dvc(page: str) -> None:
    lines = [line.split("#")[0].strip() for block in blocks(ROOT / page) for line in block.lines]
    first = next(place for place, line in enumerate(lines) if line.startswith(("dvc ", "python ")))
    assert lines.index("make repro") < lines.index(". .venv/bin/activate") < first


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    asked = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert asked
    assert asked <= targets


def test_every_script_and_its_options_exist(run_stage: RunStage) -> None:
    named: dict[str, set[str]] = {}
    for command in commands():
        program, script, *words = [*shlex.split(command), ""]
        if program == "python" and script.startswith("stages/"):
            named.setdefault(Path(script).stem, set()).update(word for word in words if word.startswith("--"))
    assert named
    for stage, options in named.items():
        assert options <= set(re.findall(r"--[a-z-]+", run_stage(stage, "--help").stdout)), stage


def test_every_named_file_exists() -> None:
    folder = r"(?:src|tests|docs|stages|benchmarks|reports|presets|tools)/[^`*\sN]+"
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in re.findall(rf"`({folder}|data/(?:corpora|sample)[^`]*)`", page.read_text())
        if not (ROOT / name).exists() and name != "reports/playground.html"  # kept in DVC's cache
    ]
    assert not missing


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_has_a_target_with_the_code_that_it_shows() -> None:
    assert len(LINKS) > 40
    dead = []
    for page, is_code, shown, target in LINKS:
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            dead.append(f"{page.name}: {target}")
        elif is_code and file.suffix == ".py" and shown not in file.read_text():
            dead.append(f"{page.name}: {target} has no {shown}")
    assert not dead


def test_the_docs_have_the_values_of_the_reports(capsys: pytest.CaptureFixture[str]) -> None:
    skip_if_experiment_is_applied()
    code = doc_values.main(ROOT, [])
    assert code == 0, f"`python tools/doc_values.py --write` would repair:\n{capsys.readouterr().out}"


def test_the_guide_has_every_equation_and_figure_of_the_chapter() -> None:
    for number, page in enumerate(SECTIONS, start=1):
        expected = [f"8.{number}.{place + 1}" for place in range(EQUATIONS.get(number, 0))]
        assert re.findall(r"\\tag\{(8\.\d\.\d+)\}", page.read_text()) == expected, page.name
    assert len(SECTIONS) == 7
    figures = ["8.1.1", "8.1.2", "8.3.1", "8.4.1", "8.4.2", "8.7.1", "8.7.2"]
    assert re.findall(r"^\| (8\.\d\.\d) ", (GUIDE / "index.md").read_text(), flags=re.MULTILINE) == figures


@pytest.mark.parametrize("page", SECTIONS, ids=lambda page: page.stem)
def test_a_page_asks_shows_code_and_has_a_command_with_its_minutes(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem[:3].replace('-', '.')} ")
    assert "```python\n" in text
    # The answer comes before the experiment, whose results would give it away, and the way back comes last.
    steps = (
        r"> \*\*Guess first\.\*\* .*?^(?:\*\*Answer\.\*\*|##+ Answer).*?"
        r"^(?:One|Two|Three) minutes?: `dvc exp run -S [^`]+`(?:(?!<details>).)*?`make restore` goes back\.\n\n"
        r"<details>\n<summary>What you should see</summary>"
    )
    assert re.search(steps, text, flags=re.MULTILINE | re.DOTALL)
    assert f"]({page.name})" in (GUIDE / "index.md").read_text()


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


def labels(name: str) -> list[str]:
    """Return the exercises of a page, such as 8.1-1 A, in their order."""
    found, current = [], ""
    text = (ROOT / "docs" / name).read_text()
    for number, letter, alone in re.findall(
        r"^\*\*(8\.\d-\d)(?: ([A-D]))?\.\*\*|^- \*\*([A-D])\.\*\*", text, re.MULTILINE
    ):
        current = number or current
        found.append(f"{current} {letter or alone}".strip())
    return found


def test_every_exercise_has_an_answer_and_no_exercise_is_missing() -> None:
    exercises, answers = labels("exercises.md"), labels("answers.md")
    numbers = list(dict.fromkeys(label.split()[0] for label in exercises))
    assert numbers == [f"8.{section}-{place + 1}" for section, count in EXERCISES.items() for place in range(count)]
    text = (ROOT / "docs" / "exercises.md").read_text()
    assert len(re.findall(r"^\*\*8\.\d-\d\.\*\* \*\((?:easy|medium|hard), \d+ minutes\)\*", text, re.MULTILINE)) == len(
        numbers
    )
    # An exercise with parts has an answer for each part.
    parts = {label.split()[0] for label in exercises if " " in label}
    assert answers == [label for label in exercises if " " in label or label not in parts]
