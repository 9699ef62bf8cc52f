"""``tools/doc_values.py`` keeps values, tables and code in README and docs equal to those of reports and modules."""

import re
from pathlib import Path

import pytest

import doc_values

PAGE = """# A page

Seen [9](../reports/a/table.csv "model=b bits .1f") or on average [9](../reports/a/table.csv
"kind=x mean(bits) .2f"), [9](../reports/a/summary.json "loss.last .3f"); [a link](../reports/a/table.csv).

<!-- table: ../reports/a/table.csv kind=x model,note -->
<!-- end -->

<!-- code: ../counter.py Counter.step | self.total | return -->
<!-- end -->
"""
SOURCE = '''"""A module."""


class Counter:
    def step(self, by: int) -> int:
        """Count.

        More about it.
        """
        # Why.
        self.total += by
        return self.total
'''


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for folder in ("reports/a", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "reports/a/table.csv").write_text("model,kind,bits,note\na,x,1.0,<unk>\nb,x,2.5,no\nc,y,7.0,no\n")
    (tmp_path / "reports/a/summary.json").write_text('{"loss": {"last": 0.12345}}')
    (tmp_path / "counter.py").write_text(SOURCE)
    (tmp_path / "README.md").write_text("nothing")
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    return tmp_path / "docs" / "page.md"


def test_values_and_tables_are_written(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = page.parent.parent
    assert doc_values.main(root, []) == 1
    assert page.read_text() == PAGE
    assert doc_values.main(root, ["--write"]) == 0
    text = page.read_text()
    # Row b has 2.5, the mean of rows a and b is (1.0 + 2.5) / 2 = 1.75, and 0.12345 is rounded to three decimals.
    assert re.findall(r"\[([\d.]+)\]", text) == ["2.5", "1.75", "0.123"]
    assert "| model | note |\n| --- | --- |\n| a | \\<unk> |\n| b | no |\n<!-- end -->" in text
    assert 'table.csv\n"kind=x' in text  # line breaks stay
    capsys.readouterr()
    assert doc_values.main(root, []) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("model=b bits", "model=z bits", "no row has model=z"),
        ("model=b bits", "kind=x bits", "2 rows have kind=x"),
        ("model=b bits", "model=b bit", "no column bit"),
        ("loss.last", "loss.first", "no loss.first"),
        ("a/summary.json", "b/summary.json", "No such file"),
        ("Counter.step", "Counter.walk", "Counter.walk"),
        ("| return", "| x = ", "x ="),
    ],
)
def test_what_is_missing_is_named_and_the_page_unchanged(
    old: str, new: str, complaint: str, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text(PAGE.replace(old, new))
    assert doc_values.main(page.parent.parent, ["--write"]) == 1
    assert complaint in capsys.readouterr().out
    assert page.read_text() == PAGE.replace(old, new)


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("Counter.step", "def step(self, by: int) -> int:\n    # Why.\n    self.total += by\n    return self.total"),
        ("Counter.step | self.total | return", "self.total += by\nreturn self.total"),
        ("Counter.step | # Why | # Why", "# Why."),
    ],
)
def test_code_is_shown_without_its_docstring(where: str, shown: str, page: Path) -> None:
    page.write_text(f"<!-- code: ../counter.py {where} -->\nold\n<!-- end -->\n")
    assert doc_values.main(page.parent.parent, []) == 1
    assert doc_values.main(page.parent.parent, ["--write"]) == 0
    link = "<sub>[counter.py](../counter.py)</sub>"
    assert page.read_text() == f"<!-- code: ../counter.py {where} -->\n```python\n{shown}\n```\n{link}\n<!-- end -->\n"
