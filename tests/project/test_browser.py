"""The pages in headless Chromium, if the machine has it."""

from pathlib import Path

import pytest

from devtools import CHROMIUM, Browser
from smoke import ROOT, SMALL
from workspace import Workspace

AUTO = {"num_threads": 1, "generate.prefixes": "auto", "train.sample_prefix": "auto"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


HOSTILE = (
    "<script>alert(1)</script> </script><script>alert(2)</script> <img/src=data:,x/onerror=alert(3)> "
    "</plaintext><svg/onload=alert(4)> --></textarea><script>alert(5)</script>"
)


def problems(page: str, folder: Path) -> list[str]:
    """Return the errors of a page in which a dialog is an error, and what its policy blocked."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    with Browser(folder / "profile") as browser:
        script = "self.alert = text => { throw new Error('ran ' + text); };"
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        browser.open(folder / "page.html")
        return browser.problems()


def test_only_the_scripts_of_the_page_run(tmp_path: Path) -> None:
    page = (ROOT / "reports" / "index.html").read_text(encoding="utf-8")
    blocked = problems(page.replace("<header>", f"<header>{HOSTILE}<p style='color: red'>", 1), tmp_path)
    assert blocked
    assert all("Content Security Policy" in problem for problem in blocked)


def test_tokens_that_are_markup_are_only_text(tmp_path: Path) -> None:
    lines = (ROOT / "data" / "sample.txt").read_text(encoding="ascii").splitlines()
    (tmp_path / "hostile.txt").write_text("".join(f"{line} {HOSTILE}\n" for line in lines[:200]))
    workspace = Workspace(tmp_path)
    workspace.begin(SMALL | AUTO | {"download.corpus": str(tmp_path / "hostile.txt"), "preprocess.normalise": "none"})
    workspace.run("dvc", "repro")
    for name in ("index.html", "playground.html"):
        assert problems((workspace.folder / "reports" / name).read_text(encoding="utf-8"), tmp_path) == []
