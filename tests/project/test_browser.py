"""The page in headless Chromium, if the machine has it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from smoke import ROOT

PAGE = ROOT / "reports" / "index.html"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=3000",
]  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

# Goes before the page's own script, so that it records every error.
LISTEN = """<script>
const heard = [];
addEventListener("error", event => heard.push(String(event.message)));
document.addEventListener("securitypolicyviolation", event => heard.push("blocked: " + event.blockedURI));
const say = console.error;
console.error = (...words) => { heard.push(words.join(" ")); say(...words); };
</script>"""
# Selects each model in turn, as a person would, and records which passages are visible.
WALK = """<script>
addEventListener("load", () => {
  const choice = document.getElementById("model"), seen = {};
  for (const option of choice.options) {
    choice.value = option.value;
    choice.dispatchEvent(new Event("change"));
    seen[option.value] = [...document.querySelectorAll(".passage")]
      .filter(passage => passage.offsetHeight > 0).map(passage => passage.dataset.model);
  }
  const requests = performance.getEntriesByType("resource").map(entry => entry.name);
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({seen, heard, requests, overflow});
  document.body.append(found);
});
</script>"""


def walk(page: str, folder: Path, width: int) -> dict:
    """Open a page with both scripts in it, and return what they recorded."""
    path = folder / "page.html"
    path.write_text(page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", WALK + "</body>", 1))
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
    assert found["heard"] == []
    assert found["requests"] == []
    assert found["overflow"] <= 0


def test_a_request_and_an_error_are_recorded(tmp_path: Path) -> None:
    bad = '<img src="https://example.org/x.png"><script>missing()</script>'
    found = walk(PAGE.read_text(encoding="utf-8").replace("</main>", bad + "</main>", 1), tmp_path, 1280)
    assert any("example.org" in heard for heard in found["heard"])
    assert any("missing" in heard for heard in found["heard"])
