"""README and docs: commands, files, links and tables are as the pages say."""

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from default_params import PARAMS_FILE
from doc_values import pages
from pages import PAGES, blocks, commands
from seqlm.configure.settings import check_values
from seqlm.core.errors import ParamsError
from smoke import ROOT
from stages_by_hand import RunStage


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


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_new_user_activates_the_environment_before_typing_dvc(page: str) -> None:
    lines = [line.split("#")[0].strip() for block in blocks(ROOT / page) for line in block.lines]
    first = next(place for place, line in enumerate(lines) if line.startswith(("dvc ", "python ")))
    made, activated = lines.index("make repro"), lines.index(". .venv/bin/activate")
    assert made < activated < first


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    asked = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert asked
    assert asked <= targets


def test_every_script_and_its_options_exist(run_stage: RunStage) -> None:
    offered: dict[str, set[str]] = {}
    missing = []
    for command in commands():
        program, script, *words = [*shlex.split(command), ""]
        if program == "python" and script.startswith("stages/"):
            name = Path(script).stem
            if name not in offered:
                offered[name] = set(re.findall(r"--[a-z-]+", run_stage(name, "--help").stdout))
            missing += [command for word in words if word.startswith("--") and word not in offered[name]]
    assert offered
    assert not missing


def test_every_named_file_exists() -> None:
    folder = r"(?:src|tests|docs|stages|benchmarks|reports|presets|tools)/[^`*\sN]+"
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in re.findall(rf"`({folder}|data/(?:corpora|sample)[^`]*)`", page.read_text())
        if not (ROOT / name).exists()
    ]
    assert not missing


LINK = re.compile(r"!?\[(`?)([^\]]*?)`?\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
# Page, whether the link shows code, what it shows, target.
LINKS = [
    (page, bool(found[1]), found[2], found[3])
    for page in [*pages(ROOT), ROOT / "CONTRIBUTING.md"]
    for found in LINK.finditer(page.read_text())
    # From the README, ../../ leads to other pages of the repository on GitHub.
    if not found[3].startswith(("http", "../../") if page.name == "README.md" and page.parent == ROOT else "http")
]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_has_a_target() -> None:
    assert len(LINKS) > 40
    dead = []
    for page, _, _, target in LINKS:
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            dead.append(f"{page.name}: {target}")
    assert not dead


def test_code_that_a_link_shows_is_in_the_file() -> None:
    missing = [
        f"{page.name}: {code}"
        for page, is_code, code, target in LINKS
        if is_code and target.endswith(".py") and code not in (page.parent / target).read_text()
    ]
    assert not missing


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    wrong = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]:
        cells = 0
        for line in page.read_text(encoding="utf-8").splitlines():
            found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            if found and cells and found != cells:
                wrong.append(f"{page.name}: {line}")
            cells = found
    assert not wrong
