"""The commands that README and docs say to type."""

import re
from pathlib import Path

from smoke import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[list[str]]:
    """Return the lines of each of the page's blocks of shell commands."""
    found = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.M | re.DOTALL)
    return [block.replace("\\\n", " ").splitlines() for block in found]


def commands_in_text(page: Path) -> list[str]:
    """Return each experiment, and each script of a stage, that the page's text names in backticks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.DOTALL)
    return re.findall(r"`((?:dvc exp run -S|python stages/\w+\.py --) ?[^`]+)`", text)
