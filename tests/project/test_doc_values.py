"""What the docs take from results and code, values, tables and excerpts, is up to date."""

import csv
import re
from pathlib import Path

import pytest

import doc_values
from default_params import skip_if_experiment_is_applied
from smoke import ROOT


@pytest.mark.parametrize("page", doc_values.PAGES, ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    skip_if_experiment_is_applied()
    text = page.read_text(encoding="utf-8")
    assert doc_values.filled(page) == text, "`python tools/doc_values.py` would write it again"


def test_each_column_of_each_table_is_documented() -> None:
    text = (ROOT / "docs/reference/tables.md").read_text(encoding="utf-8")
    items = {
        path: item
        for item in re.split(r"\n(?=- `reports|`reports|## )", text)
        for path in re.findall(r"`(reports\S+csv)`", item[:90])
    }
    for path in set(ROOT.glob("reports/**/*.csv")) - {ROOT / "reports/evaluate/table.csv"}:  # generated from COLUMNS
        name = path.relative_to(ROOT).as_posix()
        name = re.sub(r"train/[^/]+/", "evaluate/", re.sub(r"/(char|word|subword)/", "/KIND/", name))
        with path.open(encoding="utf-8", newline="") as file:
            columns = {re.sub(r"^ahead_\d+$", "ahead_K", column) for column in next(csv.reader(file))}
        assert columns <= set(re.findall(r"`(\w+)`", items[name])), name


def test_a_value_is_that_of_one_row_or_the_mean_of_several(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "t.csv").write_text("run,x\na,1\na,2\nb,4\n")
    page.write_text("[?](t.csv#run=a&mean(x):.1f) [?](t.csv#run=b&x:.0f)")
    assert doc_values.filled(page) == "[1.5](t.csv#run=a&mean(x):.1f) [4](t.csv#run=b&x:.0f)"
    page.write_text("[?](t.csv#run=a&x:.0f)")
    with pytest.raises(LookupError, match="2 rows have run=a"):
        doc_values.filled(page)
