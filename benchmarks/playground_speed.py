"""Time of each model of ``reports/playground.html`` in headless Chromium: one character, and 1,000.

For a character, a model reads it and computes the probability of every character after it. Text that the page has never
seen is read, so weights are decoded before. Run alone on the machine, after `dvc repro`:
``python benchmarks/playground_speed.py > benchmarks/results/playground_speed.txt``.
"""

import sys
import tempfile
from pathlib import Path

import psutil

from seqlm.core.layout import Layout

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from devtools import Browser  # noqa: E402 (the browser of the tests)

_READY = """(async () => {
  while (!app.slots.every((name, slot) => !name || app.views[slot].text.children.length)) await pause();
  return [app.readyAfter, performance.now()];
})()"""
_TIME = """((name, ids) => {
  const reading = new Reading(app.byName.get(name)), times = [];
  for (const id of ids) {
    const begin = performance.now();
    reading.append(id);
    reading.probs();
    times.push(performance.now() - begin);
  }
  const sorted = times.slice(100).sort((a, b) => a - b);
  return {first: times[0], median: sorted[sorted.length >> 1], all: sum(times.slice(0, 1000))};
})(%r, app.passage("test").slice(0, 1100))"""


def main() -> None:
    """Print the size of the page, the time until it can be used, and a line for each model."""
    page = Layout(ROOT).playground
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.open(page)
        ready, shaded = browser.run(_READY)
        version = browser.call("Browser.getVersion")["product"]
        print(f"{version}, {psutil.cpu_count(logical=False) or psutil.cpu_count()} cores of {processor()}")
        print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB; ready after {ready:.0f} ms, its text shaded by three "
              f"models after {shaded:.0f} ms")  # fmt: skip
        print(f"\n{'model':<24}{'first (ms)':>12}{'median (ms)':>13}{'1,000 (ms)':>12}")
        for name in browser.run("app.models.map(model => model.name)"):
            times = browser.run(_TIME % name)
            print(f"{name:<24}{times['first']:>12.1f}{times['median']:>13.2f}{times['all']:>12.0f}")


def processor() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "an unknown processor"
    )


if __name__ == "__main__":
    main()
