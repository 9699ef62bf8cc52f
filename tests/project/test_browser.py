"""The pages in headless Chromium, if the machine has it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools import CHROMIUM, Browser
from seqlm.report.page import build_surprisal_page
from smoke import ROOT, SMALL
from workspace import Workspace

AUTO = {"num_threads": 1, "generate.prefixes": "auto", "train.sample_prefix": "auto"}
PAGE = ROOT / "reports" / "index.html"
Open = Callable[..., Browser]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a page, after a script that runs first; a dialog becomes an error."""
    path = tmp_path / "page.html"
    with Browser(tmp_path / "profile") as browser:

        def open_page(page: str, width: int = 1280, first: str = "") -> Browser:
            path.write_text(page, encoding="utf-8")
            script = "self.alert = text => { throw new Error('ran ' + text); };" + first
            browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)
            browser.resize(width, 900)
            browser.events.clear()
            browser.open(path)
            return browser

        yield open_page


# Chooses each model in turn, as a person would, and returns what is shown.
WALK = """(() => {
  const seen = {}, model = document.getElementById("model"), other = document.getElementById("other");
  for (const section of document.querySelectorAll("details")) section.open = true;
  const choose = (select, name) => { select.value = name; select.dispatchEvent(new Event("change")); };
  choose(other, "");
  for (const {value, textContent} of model.options) {
    choose(model, value);
    const views = [...document.querySelectorAll(".views > div")].filter(view => view.checkVisibility());
    seen[textContent] = views.map(view => view.querySelector("h3").textContent);
  }
  return [seen, document.documentElement.scrollWidth - document.documentElement.clientWidth];
})()"""


# Chromium's window is never narrower than 500 pixels.
@pytest.mark.parametrize("width", [500, 1280])
def test_models_switch_without_errors_requests_or_overflow(width: int, opened: Open) -> None:
    browser = opened(PAGE.read_text(encoding="utf-8"), width)
    seen, overflow = browser.run(WALK)
    assert len(seen) > 1
    assert seen == {name: [name] for name in seen}
    assert overflow <= 0
    assert [address for address in browser.requests() if not address.endswith("page.html")] == []
    assert browser.problems() == []


# Points at the "t" of "sat".
POINT = """(() => {
  document.querySelectorAll(".passage i")[6].dispatchEvent(new Event("pointerover", {bubbles: true}));
  return [...document.getElementById("bits").children].map(line => line.textContent);
})()"""


def test_pointing_at_a_character_shows_its_bits_under_each_model(opened: Open) -> None:
    values = {"perplexity": 2.0, "bits_per_character": 1.0, "tokens": 6, "unknown_share": 0.0, "separator_bits": 0.0}
    passages = {
        "lstm": {"tokens": list("cat sat"), "separator": "", "bits": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        "words": {"tokens": ["cat", "sat"], "separator": " ", "bits": [None, 7.5]},
    }
    page = build_surprisal_page("x", {name: values | {"passage": shown} for name, shown in passages.items()}, [])
    browser = opened(page)
    shown = ["“t”, character 7, difference 3.5", "6.0 bits: lstm", "2.5 bits, of 7.5 for “sat”: words"]
    assert browser.run(POINT) == shown
    assert browser.problems() == []


# Sorts by the bits on test, rising and then falling.
SORT = """(() => {
  const table = document.querySelector("table.sortable"), head = [...table.tHead.rows[0].cells];
  const place = head.findIndex(cell => cell.textContent === "test"), sorted = [];
  for (let click = 0; click < 2; click++) {
    head[place].querySelector("button").click();
    sorted.push([...table.tBodies[0].rows].map(row => parseFloat(row.cells[place].textContent)));
  }
  return sorted;
})()"""
HOSTILE = (
    "<script>alert(1)</script> </script><script>alert(2)</script> <img/src=data:,x/onerror=alert(3)> "
    "</plaintext><svg/onload=alert(4)> --></textarea><script>alert(5)</script>"
)


def test_only_the_scripts_of_the_page_run(opened: Open) -> None:
    page = PAGE.read_text(encoding="utf-8")
    rising, falling = opened(page).run(SORT)
    assert rising == sorted(rising)
    assert falling == rising[::-1] != rising
    blocked = opened(page.replace("<header>", f"<header>{HOSTILE}<p style='color: red'>", 1)).problems()
    assert blocked
    assert all("Content Security Policy" in problem for problem in blocked)


# In place of Vega, which comes from the network.
CHARTS = """self.drawn = []; self.vegaEmbed = (place, chart) => { if (chart.data) drawn.push(chart.title); };"""


def test_tokens_that_are_markup_are_only_text(opened: Open, tmp_path: Path) -> None:
    lines = (ROOT / "data" / "sample.txt").read_text(encoding="ascii").splitlines()
    (tmp_path / "hostile.txt").write_text("".join(f"{line} {HOSTILE}\n" for line in lines[:200]))
    workspace = Workspace(tmp_path)
    corpus = {"download.corpus": str(tmp_path / "hostile.txt"), "preprocess.normalise": "none"}
    workspace.begin(SMALL | AUTO | corpus)
    workspace.run("dvc", "repro")

    def charts_and_drawn() -> tuple[str, Any]:
        workspace.run("dvc", "plots", "show", "--out", "charts")
        charts = (workspace.folder / "charts" / "index.html").read_text(encoding="utf-8")
        browser = opened(re.sub(r"<script src=.*?</script>", "", charts), first=CHARTS)
        assert browser.problems() == []
        cells = browser.run('document.querySelectorAll("main > .chart").length')
        drawn = browser.run("drawn")
        assert cells == len(drawn)
        return charts, drawn

    charts, drawn = charts_and_drawn()
    assert all(token in charts for token in HOSTILE.split())
    titles = [json.loads(found).get("title") for found in re.findall(r"var spec = (\{.*\});$", charts, re.MULTILINE)]
    # Charts whose lines another chart has too are left out.
    titles = [title for title in titles if title and not title.startswith(("Training of", "Most frequent n-grams"))]
    assert len(titles) > 35
    assert drawn == titles
    page = (workspace.folder / "reports" / "index.html").read_text(encoding="utf-8")
    assert opened(page).problems() == []
    # As while a run is trained: its history is shorter than in the overview of the finished runs.
    history = next((workspace.folder / "reports/train").glob("*/history.csv"))
    history.write_text("".join(history.read_text().splitlines(keepends=True)[:-1]))
    assert sorted(charts_and_drawn()[1]) == sorted([*titles, f"Training of {history.parent.name}"])
