"""Files for editors, GitHub and pip agree with the project."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from smoke import ROOT

CHECKER = shutil.which("check-jsonschema", path=Path(sys.executable).parent)
FORM = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"


@pytest.mark.skipif(CHECKER is None, reason="check-jsonschema is not installed: it comes with the extra `test`")
def test_the_issue_form_follows_the_schema_of_github() -> None:
    subprocess.run([str(CHECKER), "--builtin-schema", "vendor.github-issue-forms", str(FORM)], check=True)


def test_the_container_has_the_oldest_python_and_installs_with_make() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    command, target = container["postCreateCommand"].split()
    assert command == "make"
    assert f"\n{target}:" in (ROOT / "Makefile").read_text()
    oldest = container["image"].rpartition(":")[2]
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()


PINS = ROOT / "requirements-hashed.txt"


def normal(package: str) -> str:
    """Return a package's name in its normal form."""
    return re.sub(r"[-_.]+", "-", package).lower()


def test_every_package_is_pinned_once_with_hashes() -> None:
    lines = [line for line in PINS.read_text().splitlines() if not line.startswith("#")]
    pins = [line for line in lines if not line.startswith("    --hash=sha256:")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+( ; .*)? \\", line) for line in pins)
    assert len({line.split("==")[0] for line in pins}) == len(pins) > 100
    # A hash follows each.
    assert all(lines[place + 1].startswith("    --hash") for place, line in enumerate(lines) if line in pins)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    names = {normal(re.match(r"[A-Za-z0-9_.-]+", line)[0]) for line in wanted}
    assert names <= set(re.findall(r"^([a-z0-9-]+)==", PINS.read_text(), flags=re.MULTILINE))


def dry_run_of_make(*arguments: str) -> str:
    """Return the commands that make would run, one per line."""
    command = ["make", "--dry-run", "--always-make", *arguments]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return said.replace("\\\n", "")


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_make_reads_the_pins_and_can_install_another_build_of_pytorch() -> None:
    (command,) = [line for line in dry_run_of_make("install").splitlines() if line.startswith("sed ")]
    filtered = subprocess.run(["sh", "-c", command.partition(" > ")[0]], cwd=ROOT, capture_output=True, text=True)
    pins = filtered.stdout.splitlines()
    assert len(pins) == len(re.findall(r"^[a-z0-9-]+==", PINS.read_text(), flags=re.MULTILINE))
    assert not [line for line in pins if "hash" in line or line.endswith("\\")]
    assert "torch==2.13.0" in pins

    assert "--index-url" not in dry_run_of_make("install")
    pip = [
        line
        for line in dry_run_of_make("install", "TORCH_INDEX=https://x.org/cpu").splitlines()
        if "pip install" in line
    ]
    # First only PyTorch from there, then everything else from pip's default index.
    assert re.search(r"--no-deps --index-url 'https://x.org/cpu' .* torch$", pip[0])
    assert "--index-url" not in pip[1]


def test_the_version_is_the_newest_in_the_changelog() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == versions[0]
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)
