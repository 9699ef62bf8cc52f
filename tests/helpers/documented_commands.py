"""The commands that README and docs say to type."""

import re
from pathlib import Path

from smoke import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[list[str]]:
    """Return the lines of each of the page's blocks of shell commands.

    In the README and on pages of howto/, blocks of Python are one command, which runs all up to this one.
    """
    found, python, program = [], page.parent.name == "howto" or page.name == "README.md", ""
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```$", page.read_text(), re.M | re.DOTALL):
        if language == "sh":
            found.append(block.replace("\\\n", " ").splitlines())
        elif python:
            saved = re.findall(r'\.save\("(.+)"\)', program)  # by the blocks before, which run again
            program += block
            found.append([*(f"rm -r {folder}" for folder in saved), "python - <<'END'", *program.splitlines(), "END"])
    return found


def commands_in_text(page: Path) -> list[str]:
    """Return each experiment, and each script of a stage, that the page's text names in backticks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.DOTALL)
    return re.findall(r"`((?:dvc exp run -S|python stages/\w+\.py --) ?[^`]+)`", text)
