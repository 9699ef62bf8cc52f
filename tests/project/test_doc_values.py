"""What tools write into the docs, values, tables, code and the reference, is up to date."""

import csv
import re
from pathlib import Path

import pytest

import doc_reference
import doc_values
from default_params import skip_if_experiment_is_applied
from smoke import ROOT


@pytest.mark.parametrize("page", doc_values.PAGES, ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    skip_if_experiment_is_applied()
    text = page.read_text(encoding="utf-8")
    assert doc_values.filled(page, doc_reference.WRITERS) == text, (
        "`python tools/doc_reference.py` would write it again"
    )


def test_values_tables_and_code_are_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,kind,bits,note\na,x y,1.0,<unk>\nb,x y,2.5,True\nc,z,7.0,no\n")
    (tmp_path / "s.json").write_text('{"loss": {"last": 0.12345}}')
    (tmp_path / "c.py").write_text('class C:\n    def step(self):\n        """Count."""\n        self.n += 1\n')
    page = tmp_path / "page.md"
    page.write_text(
        "[](t.csv#model=b&bits:.1f) [](t.csv#kind=x_y&mean(bits):.2f) [](s.json#loss.last:.3f) [a link](t.csv)\n"
        "<!-- table: t.csv kind=x_y model=name,note -->\n<!-- end -->\n"
        "<!-- code: c.py C.step | self.n -->\n<!-- end -->\n"
    )
    text = doc_values.filled(page, doc_values.WRITERS)
    # The mean of rows a and b is (1.0 + 2.5) / 2 = 1.75.
    assert re.findall(r"\[(.*?)\]", text)[:4] == ["2.5", "1.75", "0.123", "a link"]
    assert "| name | note |\n| --- | --- |\n| a | \\<unk> |\n| b | yes |\n<!-- end -->" in text
    assert "```python\nself.n += 1\n```\n" in text
    page.write_text("[](t.csv#kind=x_y&bits:.1f)")
    with pytest.raises(LookupError, match="2 rows"):
        doc_values.filled(page, doc_values.WRITERS)


def test_each_column_of_each_table_is_documented() -> None:
    text = (ROOT / "docs/reference/tables.md").read_text(encoding="utf-8")
    items = {
        path: item
        for item in re.split(r"\n(?=- `reports|`reports|## )", text)
        for path in re.findall(r"`(reports\S+csv)`", item[:90])
    }
    for path in ROOT.glob("reports/**/*.csv"):
        name = path.relative_to(ROOT).as_posix()
        name = re.sub(r"train/[^/]+/", "evaluate/", re.sub(r"/(char|word|subword)/", "/KIND/", name))
        with path.open(encoding="utf-8", newline="") as file:
            columns = {re.sub(r"^ahead_\d+$", "ahead_K", column) for column in next(csv.reader(file))}
        assert columns <= set(re.findall(r"`(\w+)`", items[name])), name
