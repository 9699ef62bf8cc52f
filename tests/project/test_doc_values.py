"""Values in README and docs are those of the reports, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

import doc_values
from smoke import ROOT

PAGE = """# A page

Seen [9](../reports/a/table.csv "model=b bits .1f") or on average [9](../reports/a/table.csv
"kind=x mean(bits) .2f"), [9](../reports/a/summary.json "loss.last .3f"); [a link](../reports/a/table.csv).

<!-- table: ../reports/a/table.csv kind=x model,note -->
<!-- end -->
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for folder in ("reports/a", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "reports/a/table.csv").write_text("model,kind,bits,note\na,x,1.0,<unk>\nb,x,2.5,no\nc,y,7.0,no\n")
    (tmp_path / "reports/a/summary.json").write_text('{"loss": {"last": 0.12345}}')
    (tmp_path / "README.md").write_text("nothing")
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    return tmp_path / "docs" / "page.md"


def test_values_and_tables_are_written(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = page.parent.parent
    assert doc_values.main(root, []) == 1
    assert page.read_text() == PAGE
    assert doc_values.main(root, ["--write"]) == 0
    text = page.read_text()
    # Row b has 2.5; rows a and b have (1.0 + 2.5) / 2 = 1.75 on average; 0.12345 has three decimals.
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
    ],
)
def test_what_is_not_there_is_named(
    old: str, new: str, complaint: str, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text(PAGE.replace(old, new))
    assert doc_values.main(page.parent.parent, ["--write"]) == 1
    assert complaint in capsys.readouterr().out
    assert page.read_text() == PAGE.replace(old, new)


def test_the_docs_say_what_the_reports_say(capsys: pytest.CaptureFixture[str]) -> None:
    code = doc_values.main(ROOT, [])
    assert code == 0, f"python tools/doc_values.py --write would mend:\n{capsys.readouterr().out}"


LINK = re.compile(r"!?\[(`?)([^\]]*?)`?\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
LINKS = [
    (page, bool(found[1]), found[2], found[3])
    for page in [*doc_values.pages(ROOT), ROOT / "CONTRIBUTING.md"]
    for found in LINK.finditer(page.read_text())
    if not found[3].startswith("http")
]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere() -> None:
    assert len(LINKS) > 40
    dead = []
    for page, _, _, target in LINKS:
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            dead.append(f"{page.name}: {target}")
    assert not dead


def test_code_that_a_link_shows_stands_in_the_file() -> None:
    missing = [
        f"{page.name}: {code}"
        for page, is_code, code, target in LINKS
        if is_code and target.endswith(".py") and code not in (page.parent / target).read_text()
    ]
    assert not missing
