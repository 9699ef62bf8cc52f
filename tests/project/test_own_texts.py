"""Texts that a newcomer tries first, with the real DVC: each ends with a page, or with one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chinese import chinese_markdown
from seqlm.core.layout import Layout
from seqlm.train.settings import run_names
from smoke import ROOT, SMALL
from workspace import Workspace, stages_run

AUTO = {"num_threads": 1, "generate.prefixes": "auto", "train.sample_prefix": "auto"}
# With the default settings, 2 MB with thousands of characters take half an hour.
BOUNDED = {
    "train.token_budget": 50_000, "runs.lstm.token_budget": 50_000, "train.num_epochs": 2,
    "runs.lstm.num_epochs": 2, "heldout.max_chars": 10_000, "gradients.num_minibatches": 20,
}  # fmt: skip


def english(num_bytes: int) -> str:
    story = (ROOT / "data" / "sample.txt").read_text(encoding="ascii")
    return (story * (num_bytes // len(story) + 1))[:num_bytes]


def prepare(base: Path, text: str, params: dict[str, Any]) -> Workspace:
    """Return a workspace whose corpus is a user's own file."""
    diary = base / "diary.txt"
    diary.write_text(text, encoding="utf-8", newline="\n")
    workspace = Workspace(base)
    workspace.begin(params | {"download.corpus": str(diary)})
    return workspace


def without_blanks(text: str) -> str:
    return "".join(text.split())


def is_subsequence(prefix: str, text: str) -> bool:
    """Whether a text has the characters of a prefix in order; it may have others between them, unknown in train."""
    rest = iter(text)
    return all(character in rest for character in prefix)


def require_page(workspace: Workspace, said: str) -> str:
    """Raise AssertionError unless page, table, figures and samples are complete; return the table."""
    reports, layout = workspace.folder / "reports", Layout(workspace.folder)
    page, table = (reports / "index.html").read_text(), (reports / "table.txt").read_text()
    runs = run_names(layout.configs)
    for run in runs:
        assert re.search(rf"  {run}$", table, re.MULTILINE), run
        assert f"<small>{run}</small>" in page
    assert "diary.txt" in page
    figures = {path.name: path.read_text() for path in (reports / "figures").glob("*.svg")}
    of_book = {path.name for path in (ROOT / "reports" / "figures").glob("*.svg")}
    assert of_book - set(figures) == {"curves-data.svg", "curves-time.svg"}
    assert page.count("<svg") == len(figures) == (ROOT / "reports" / "index.html").read_text().count("<svg") - 2
    for complaint in ("Warning", "Glyph", "findfont", "Traceback"):  # of libraries; ours begin with "warning: "
        assert complaint not in said
    val = without_blanks((workspace.folder / "data/text/val.txt").read_text(encoding="utf-8"))
    samples = json.loads((reports / "generate/samples.json").read_text(encoding="utf-8"))
    prefixes = {sample["prefix"] for sample in samples}
    assert len(prefixes) == 2
    assert all(is_subsequence(without_blanks(prefix), val[:100]) for prefix in prefixes)
    return table


@pytest.mark.slow
def test_300_bytes_are_refused_with_one_line_that_names_the_file(tmp_path: Path) -> None:
    workspace = prepare(tmp_path, english(300), {})
    result = workspace.run("dvc", "repro", check=False)
    assert stages_run(result.stdout) == ["configure", "download", "preprocess"]
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: diary.txt: ")
    assert "use a text of at least 500" in line
    assert "Traceback" not in result.stderr
    assert not list((workspace.folder / "data" / "text").glob("*.txt"))


@pytest.mark.slow
@pytest.mark.parametrize(("num_bytes", "params"), [(1_200, SMALL), (3_000, {}), (30_000, {})])
def test_english_gets_its_page(num_bytes: int, params: dict[str, Any], tmp_path: Path) -> None:
    workspace = prepare(tmp_path, english(num_bytes), params | AUTO)
    result = workspace.run("dvc", "repro", timeout=3000)
    table = require_page(workspace, result.stdout + result.stderr)
    # A minibatch of 32 x 35 needs 35 * 33 = 1155 tokens. Four fifths of 1,200 are fewer, enough for 960 // 35 - 1 = 26
    # rows, or one or two less as cleaning drops some. A text of 3,000 bytes is enough even for 32 x 64: 2,112 tokens.
    assert re.findall(r"(plain|small-lstm|lstm) (\d+) x (\d+)", table) == (
        [("plain", "25", "35"), ("small-lstm", "25", "35")] if num_bytes == 1_200 else []
    )


@pytest.mark.slow
@pytest.mark.parametrize(("num_bytes", "params"), [(100_000, SMALL), (2_000_000, BOUNDED)])
def test_chinese_gets_its_page(num_bytes: int, params: dict[str, Any], tmp_path: Path) -> None:
    workspace = prepare(tmp_path, chinese_markdown(num_bytes), params | AUTO | {"preprocess.normalise": "none"})
    result = workspace.run("dvc", "repro", timeout=3000)
    require_page(workspace, result.stdout + result.stderr)
    drawn = (workspace.folder / "reports/figures/book-partition.svg").read_text(encoding="utf-8")
    assert re.search("[\u4e00-\u9fff]", drawn)
