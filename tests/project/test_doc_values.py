"""Tools that keep docs equal to what the code says: values, tables, code, and the reference."""

import csv
import re
from pathlib import Path

import pytest

import doc_reference
import doc_values
from default_params import skip_if_experiment_is_applied
from smoke import ROOT

PAGE = """# A page

Seen [9](../reports/a/table.csv "model=b bits .1f") or on average [9](../reports/a/table.csv
"kind=x mean(bits) .2f"), [9](../reports/a/summary.json "loss.last .3f"); [a link](../reports/a/table.csv).

<!-- table: ../reports/a/table.csv kind=x model=name,note -->
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
    (tmp_path / "reports/a/table.csv").write_text("model,kind,bits,note\na,x,1.0,<unk>\nb,x,2.5,True\nc,y,7.0,no\n")
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
    assert "| name | note |\n| --- | --- |\n| a | \\<unk> |\n| b | yes |\n<!-- end -->" in text
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
def test_gaps_are_named(old: str, new: str, complaint: str, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    link = "<sub>Excerpt from [counter.py](../counter.py)</sub>"
    assert page.read_text() == f"<!-- code: ../counter.py {where} -->\n```python\n{shown}\n```\n{link}\n<!-- end -->\n"


def test_the_reference_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    skip_if_experiment_is_applied()
    assert doc_reference.main(["--check"]) == 0, capsys.readouterr().out


def documented_columns() -> dict[str, list[str]]:
    """Return the columns of each table that tables.md describes; none for one that refers to another."""
    found = {}
    text = (doc_reference.REFERENCE / "tables.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `(reports/\S+\.csv)`$", text, flags=re.MULTILINE)
    for path, part in zip(parts[1::2], parts[2::2], strict=True):
        table = part.partition("| column | meaning |\n")[2].partition("\n\n")[0]
        found[path] = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    return found


def columns(path: Path) -> list[str]:
    """Return the columns of a table; those of the k-step predictions as one."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(re.sub(r"^ahead_\d+$", "ahead_K", column) for column in next(csv.reader(file))))


def test_tables_have_the_documented_columns() -> None:
    found: dict[str, list[str]] = {}
    for path in ROOT.glob("reports/**/*.csv"):
        name = path.relative_to(ROOT).as_posix()
        name = re.sub(r"/(char|word|subword)/", "/KIND/", re.sub(r"/train/[^/]+/", "/train/RUN/", name))
        assert found.setdefault(name, columns(path)) == columns(path), name
    documented = documented_columns()
    documented["reports/train/RUN/history.csv"] = documented["reports/evaluate/history.csv"]
    assert found == documented
