"""Texts that a newcomer tries first, with the real DVC: each ends with a page, or with one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsers import CHROMIUM, Browser
from smoke import ROOT, SMALL
from workspace import Workspace

AUTO = {"num_threads": 1, "generate.prefixes": "auto", "train.sample_prefix": "auto"}
RAW = AUTO | {"preprocess.normalise": "none"}
ENGLISH = (ROOT / "data" / "sample.txt").read_text(encoding="ascii") * 20
HOSTILE = (
    "<script>alert(1)</script> </script><script>alert(2)</script> <img/src=data:,x/onerror=alert(3)> "
    "</plaintext><svg/onload=alert(4)> --></textarea><script>alert(5)</script>"
)
"""If any of it is markup, a script runs or is refused by the policy of the page."""


def chinese(num_characters: int) -> str:
    """Return a text with thousands of different characters, drawn by Zipf's law, and hardly a space."""
    ranks = np.random.default_rng(0).zipf(1.2, num_characters)
    text = "".join(chr(0x4E00 + rank % 6000) for rank in ranks)
    return "".join(f"{text[start : start + 40]}。\n\n" for start in range(0, len(text), 40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "params"),
    [
        (ENGLISH[:1700], SMALL | AUTO),
        (ENGLISH[:3000], AUTO),
        (chinese(30_000), SMALL | RAW),
        (ENGLISH[:9000].replace("\n", f" {HOSTILE}\n"), SMALL | RAW),
    ],
    ids=["shortest English", "English, default settings", "Chinese", "markup"],
)
def test_a_text_gets_its_page(text: str, params: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text(text, encoding="utf-8", newline="\n")
    workspace = Workspace(tmp_path)
    workspace.begin(params | {"download.corpus": str(tmp_path / "diary.txt")})
    said = workspace.run("dvc", "repro", timeout=3000)
    reports = workspace.folder / "reports"
    page, table = (reports / "index.html").read_text(), (reports / "summary.txt").read_text()
    assert "diary.txt" in page
    assert all(config.stem in table for config in (workspace.folder / "data/configs").glob("*.json"))
    for complaint in ("Warning", "Glyph", "findfont", "Traceback"):  # of libraries; ours begin with "warning: "
        assert complaint not in said.stdout + said.stderr
    samples = json.loads((reports / "generate/samples.json").read_text(encoding="utf-8"))
    assert len({sample["prefix"] for sample in samples}) == 2
    if CHROMIUM:
        with Browser(tmp_path / "browser") as browser:
            browser.call("Page.addScriptToEvaluateOnNewDocument", source="self.alert = text => { throw Error(text); };")
            for name in ("index.html", "playground.html"):
                browser.open(reports / name)
                assert browser.problems() == []
