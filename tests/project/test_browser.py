"""The pages in headless Chromium, if the machine has it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from seqlm.report.page import build_surprisal_page
from smoke import ROOT, SMALL
from workspace import Workspace

AUTO = {"num_threads": 1, "generate.prefixes": "auto", "train.sample_prefix": "auto"}
PAGE = ROOT / "reports" / "index.html"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=3000",
]  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

# Goes before the page's own script, so that it records every error, and before its policy, which would forbid it.
LISTEN = """<script>
const heard = [];
addEventListener("error", event => heard.push(String(event.message)));
document.addEventListener("securitypolicyviolation", event => heard.push("blocked: " + event.blockedURI));
const say = console.error;
self.alert = text => heard.push("ran " + text);
console.error = (...words) => { heard.push(words.join(" ")); say(...words); };
function record(found) {
  const place = document.createElement("pre");
  place.id = "found";
  place.textContent = JSON.stringify(found);
  document.body.append(place);
}
</script>"""
# Chooses each model in turn, as a person would, and records what is shown.
WALK = """<script>
addEventListener("load", () => {
  const seen = {}, model = document.getElementById("model"), other = document.getElementById("other");
  for (const section of document.querySelectorAll("details")) section.open = true;
  const choose = (select, name) => { select.value = name; select.dispatchEvent(new Event("change")); };
  choose(other, "");
  for (const {value, textContent} of model.options) {
    choose(model, value);
    const views = [...document.querySelectorAll(".views > div")].filter(view => view.checkVisibility());
    seen[textContent] = views.map(view => view.querySelector("h3").textContent);
  }
  const requests = performance.getEntriesByType("resource").map(entry => entry.name);
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  record({seen, heard, requests, overflow});
});
</script>"""


def walk(page: str, folder: Path, width: int, script: str = WALK) -> dict:
    """Open a page with two scripts in it, and return what they recorded."""
    path = folder / "page.html"
    path.write_text(page.replace("<head>", "<head>" + LISTEN + script, 1))
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    shown = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    match = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert match, "the page's load event never came"
    return json.loads(match[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


# Chromium's window is never narrower than 500 pixels.
@pytest.mark.parametrize("width", [500, 1280])
def test_models_switch_without_errors_requests_or_overflow(width: int, tmp_path: Path) -> None:
    found = walk(PAGE.read_text(encoding="utf-8"), tmp_path, width)
    assert len(found["seen"]) > 1
    assert found["seen"] == {name: [name] for name in found["seen"]}
    assert found["heard"] == found["requests"] == []
    assert found["overflow"] <= 0


# Points at the "t" of "sat".
POINT = """<script>
addEventListener("load", () => {
  const letter = document.querySelectorAll(".passage i")[6];
  letter.dispatchEvent(new Event("pointerover", {bubbles: true}));
  record({shown: [...document.getElementById("bits").children].map(line => line.textContent), heard});
});
</script>"""


def test_pointing_at_a_character_shows_its_bits_under_each_model(tmp_path: Path) -> None:
    values = {"perplexity": 2.0, "bits_per_character": 1.0, "tokens": 6, "unknown_share": 0.0, "separator_bits": 0.0}
    passages = {
        "lstm": {"tokens": list("cat sat"), "separator": "", "bits": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        "words": {"tokens": ["cat", "sat"], "separator": " ", "bits": [None, 7.5]},
    }
    page = build_surprisal_page("x", {name: values | {"passage": shown} for name, shown in passages.items()}, [])
    found = walk(page, tmp_path, 1280, POINT)
    shown = ["“t”, character 7, difference 3.5", "6.0 bits: lstm", "2.5 bits, of 7.5 for “sat”: words"]
    assert found == {"shown": shown, "heard": []}


# Sorts by the bits on test, rising and then falling.
SORT = """<script>
addEventListener("load", () => {
  const table = document.querySelector("table.sortable"), head = [...table.tHead.rows[0].cells];
  const place = head.findIndex(cell => cell.textContent === "test"), sorted = [];
  for (let click = 0; click < 2; click++) {
    head[place].querySelector("button").click();
    sorted.push([...table.tBodies[0].rows].map(row => parseFloat(row.cells[place].textContent)));
  }
  record({sorted, heard});
});
</script>"""


def test_only_the_scripts_of_the_page_run(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    rising, falling = walk(page, tmp_path, 1280, SORT)["sorted"]
    assert rising == sorted(rising)
    assert falling == rising[::-1] != rising
    injected = page.replace("<header>", f"<header>{HOSTILE}<p style='color: red'>", 1)
    heard = walk(injected, tmp_path, 1280, SORT)["heard"]
    assert set(heard) == {"blocked: inline", "blocked: data"}


HOSTILE = (
    "<script>alert(1)</script> </script><script>alert(2)</script> <img/src=data:,x/onerror=alert(3)> "
    "</plaintext><svg/onload=alert(4)> --></textarea><script>alert(5)</script>"
)
# In place of Vega, which comes from the network.
CHARTS = """<script>
const drawn = [];
self.vegaEmbed = (place, chart) => { if (chart.data) drawn.push(chart.title); };
addEventListener("load", () => record({drawn, cells: document.querySelectorAll("main > .chart").length, heard}));
</script>"""


def test_tokens_that_are_markup_are_only_text(tmp_path: Path) -> None:
    lines = (ROOT / "data" / "sample.txt").read_text(encoding="ascii").splitlines()
    (tmp_path / "hostile.txt").write_text("".join(f"{line} {HOSTILE}\n" for line in lines[:200]))
    workspace = Workspace(tmp_path)
    corpus = {"download.corpus": str(tmp_path / "hostile.txt"), "preprocess.normalise": "none"}
    workspace.begin(SMALL | AUTO | corpus)
    workspace.run("dvc", "repro")
    workspace.run("dvc", "plots", "show", "--out", "charts")
    charts = (workspace.folder / "charts" / "index.html").read_text(encoding="utf-8")
    assert all(token in charts for token in HOSTILE.split())
    titles = [json.loads(found).get("title") for found in re.findall(r"var spec = (\{.*\});$", charts, re.MULTILINE)]
    # Charts whose lines another chart has too are left out.
    titles = [title for title in titles if title and not title.startswith(("Training of", "Most frequent n-grams"))]
    assert len(titles) > 35
    without_vega = re.sub(r"<script src=.*?</script>", "", charts)
    found = walk(without_vega, tmp_path, 1280, CHARTS)
    assert found == {"drawn": titles, "cells": len(titles), "heard": []}
    page = (workspace.folder / "reports" / "index.html").read_text(encoding="utf-8")
    assert walk(page, tmp_path, 1280)["heard"] == []
    # As while a run is trained: its history is shorter than in the overview of the finished runs.
    history = next((workspace.folder / "reports/train").glob("*/history.csv"))
    history.write_text("".join(history.read_text().splitlines(keepends=True)[:-1]))
    workspace.run("dvc", "plots", "show", "--out", "charts")
    charts = (workspace.folder / "charts" / "index.html").read_text(encoding="utf-8")
    found = walk(re.sub(r"<script src=.*?</script>", "", charts), tmp_path, 1280, CHARTS)
    assert sorted(found["drawn"]) == sorted([*titles, f"Training of {history.parent.name}"])
