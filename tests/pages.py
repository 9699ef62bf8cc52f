"""The commands that README and docs say to type."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from smoke import ROOT

# test_doc_values.py checks the reference, which is written from the code.
GUIDES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDES]


def commands() -> list[str]:
    """Return every command in a shell block or in backticks, without comments."""
    found = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
            found += block.splitlines()
        found += re.findall(r"`((?:dvc|make|python) [^`]+)`", text)
    return sorted({shlex.join(shlex.split(line, comments=True)) for line in found if line.strip()})


class Block(NamedTuple):
    page: str
    """Its path in the project."""
    heading: str
    lines: list[str]


def blocks(page: Path) -> list[Block]:
    """Return the page's blocks of shell commands, each with the heading before it."""
    found, heading = [], ""
    for part in re.finditer(
        r"^#+ ([^\n]*)$|^```(?:sh|bash|shell|console)\n(.*?)^```$", page.read_text(), re.M | re.DOTALL
    ):
        if part[2] is None:
            heading = part[1]
        else:
            found.append(Block(page.relative_to(ROOT).as_posix(), heading, part[2].replace("\\\n", " ").splitlines()))
    return found
