"""The table of constants that change results."""

import re
from pkgutil import resolve_name

import pytest

from smoke import ROOT

TABLE = (ROOT / "docs/reference/constants.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "value"), re.findall(r"^\| `(\S+)` \| (\S+) \|", TABLE, re.MULTILINE))
def test_the_table_has_the_values_of_the_code(name: str, value: str) -> None:
    assert resolve_name(name) == float(value)
