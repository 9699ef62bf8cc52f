"""What README and docs say to type exists."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from default_params import PARAMS_FILE
from pages import PAGES, commands
from seqlm.configure.settings import check_whole
from smoke import ROOT

EXPERIMENTS = [command for command in commands() if command.startswith("dvc exp run") and "-S " in command]


def test_there_are_commands() -> None:
    assert len(commands()) > 15
    assert len(EXPERIMENTS) > 8


@pytest.mark.parametrize("command", EXPERIMENTS)
def test_every_experiment_has_settings_that_are_accepted(command: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    yaml = YAML(typ="safe", pure=True)
    params = yaml.load(PARAMS_FILE)
    for word in (words[place + 1] for place, flag in enumerate(words) if flag == "-S"):
        name, _, value = word.partition("=")
        value = re.sub(r"^choice\(([^,]*),.*\)$", r"\1", value)  # the first value of a sweep
        *parents, key = name.removeprefix("+").split(".")
        section = params
        for parent in parents:
            section = section[parent]
        if parents == ["runs"] and name.startswith("+"):
            section.pop(key, None)  # the experiment that adds it may have been committed
        # DVC refuses a new key without a plus, and so must the text.
        assert (key in section) != name.startswith("+"), word
        section[key] = yaml.load(value)
    with (tmp_path / "params.yaml").open("w") as file:
        YAML().dump(params, file)
    check_whole(tmp_path / "params.yaml")


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for command in commands():
        if command.startswith("make "):
            assert command.split()[1] in targets, command


def test_every_script_and_its_options_are_there() -> None:
    for command in commands():
        words = shlex.split(command)
        if words[0] != "python" or not words[1].startswith("stages/"):
            continue
        help_text = subprocess.run(
            [sys.executable, ROOT / words[1], "--help"], capture_output=True, text=True, check=True
        ).stdout
        for option in (word for word in words[2:] if word.startswith("--") and word != "--help"):
            assert option in help_text, command


def test_every_file_that_is_named_is_there() -> None:
    for page in PAGES:
        for name in re.findall(r"`((?:src|tests|docs|stages|benchmarks|reports|data)/[^`*\sN]+)`", page.read_text()):
            if not name.startswith(("data/configs", "data/raw", "data/text", "data/work")):
                assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_the_graph_in_the_readme_is_that_of_the_pipeline() -> None:
    readme = (ROOT / "README.md").read_text()
    drawn = set(re.findall(r"^  ([\w-]+) --> ([\w-]+)", readme, flags=re.MULTILINE))
    stages = YAML(typ="safe").load(ROOT / "dvc.yaml")["stages"]
    names = {name for pair in drawn for name in pair}
    assert names == set(stages)
    for before, after in drawn:
        bodies = [stages[name].get("do", stages[name]) for name in (before, after)]
        made = [
            next(iter(out)) if isinstance(out, dict) else out
            for kind in ("outs", "metrics", "plots")
            for out in bodies[0].get(kind, [])
        ]
        made = [re.split(r"\$\{|/(?=[^/]*$)", path)[0].rstrip("/") for path in made]
        needed = [re.split(r"\$\{", dep)[0].rstrip("/") for dep in bodies[1]["deps"]]
        assert any(need.startswith(out) or out.startswith(need) for need in needed for out in made), (before, after)


def reachable(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return every pair of which the second can be reached from the first."""
    found = set(edges)
    while more := {(a, d) for a, b in found for c, d in edges if b == c} - found:
        found |= more
    return found


def test_the_graph_in_the_readme_says_what_dvc_says() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    said = subprocess.run(
        ["dvc", "dag", "--md"],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Stages of one name, such as vocab@char, are one box in the README.
    names = dict(re.findall(r"(node\d+)\[\"([^\"@]+)", said))
    edges = {(names[before], names[after]) for before, after in re.findall(r"(node\d+)-->(node\d+)", said)}
    drawn = set(re.findall(r"^  ([\w-]+) --> ([\w-]+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE))
    # Arrows that others imply are left out of the drawing.
    assert drawn <= edges
    assert reachable(drawn) == reachable(edges)
