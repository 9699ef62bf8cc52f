"""The table of constants in the docs."""

import ast
import re
from pkgutil import resolve_name

import pytest

from smoke import ROOT

DOC = (ROOT / "docs" / "reference" / "constants.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(seqlm\.[\w.]+:\w+)` \| ([^|]+) \|", DOC, re.MULTILINE)


@pytest.mark.parametrize(("name", "value"), ROWS)
def test_the_docs_have_the_values_of_constants_that_change_results(name: str, value: str) -> None:
    assert resolve_name(name) == ast.literal_eval(re.sub(r"(?<=\d),(?=\d)", "", value.strip()))
