"""The files around the project that editors and GitHub read say what is so."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from smoke import ROOT

CHECKER = shutil.which("check-jsonschema", path=Path(sys.executable).parent)
FORM = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed: it comes with the extra `test`")
def test_the_issue_form_has_the_form_that_github_asks_for() -> None:
    subprocess.run([str(CHECKER), "--builtin-schema", "vendor.github-issue-forms", str(FORM)], check=True)


def test_the_issue_form_asks_for_what_is_needed() -> None:
    fields = {field["id"]: field for field in YAML(typ="safe").load(FORM)["body"]}
    needed = {name for name, field in fields.items() if field.get("validations", {}).get("required")}
    assert needed == {"command", "expected", "versions"}


def test_the_container_installs_with_make_and_has_the_oldest_python() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    command, target = container["postCreateCommand"].split()
    assert command == "make"
    assert f"\n{target}:" in (ROOT / "Makefile").read_text()
    oldest = container["image"].rpartition(":")[2]
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()


def test_the_dvc_extension_is_recommended_in_both_places() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    recommended = json.loads((ROOT / ".vscode" / "extensions.json").read_text())["recommendations"]
    assert container["customizations"]["vscode"]["extensions"] == recommended
    assert "Iterative.dvc" in recommended


def pins(name: str) -> dict[str, str]:
    """Return package -> version as a requirements file pins them, names in their normal form."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_the_hashed_pins_are_those_of_the_constraints() -> None:
    hashed, constraints = pins("requirements-hashed.txt"), pins("constraints.txt")
    assert {package: hashed.get(package) for package in constraints} == constraints
    text = (ROOT / "requirements-hashed.txt").read_text()
    assert len(re.findall(r"^[a-z0-9]\S*==.* \\$", text, re.MULTILINE)) == len(hashed)
    assert all(
        line.startswith("    --hash=sha256:") for line in text.splitlines() if line[0] not in "#" and "==" not in line
    )


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9_.-]+", line)[0]).lower() for line in wanted}
    assert names <= set(pins("constraints.txt"))
