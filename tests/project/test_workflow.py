"""What is installed is pinned."""

import re
import tomllib
from typing import Any

from smoke import ROOT

PINS = (ROOT / "requirements-hashed.txt").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_dependency_is_pinned_once_with_hashes() -> None:
    pins = re.findall(r"^([a-z0-9-]+)==\S+( ; .*)? \\\n    --hash=sha256:", PINS, flags=re.MULTILINE)
    names = {name for name, _ in pins}
    assert len(names) == len(pins) == len(re.findall("^[a-z]", PINS, flags=re.MULTILINE)) > 100
    extras = (PROJECT["optional-dependencies"][name] for name in ("pipeline", "subwords", "test", "torch"))
    wanted = [line for lines in (PROJECT["dependencies"], *extras) for line in lines]
    assert {re.split(r"[^\w.-]", line)[0].lower().replace(".", "-") for line in wanted} - {"seqlm"} <= names
