"""Time of each model of ``reports/playground.html`` in headless Chromium: one character, and 1,000.

For a character, the page asks its worker, where a model reads the character and computes the probability of every
character after it. Text that the page has never seen is read. Run alone on the machine, after `dvc repro`:
``python benchmarks/playground_speed.py > benchmarks/results/playground_speed.txt``.
"""

import sys
import tempfile
from pathlib import Path

from origin import origin

from seqlm.core.layout import Layout

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tools")]

from browsers import Browser  # noqa: E402 (the browser of the tests)

_READY = """(async () => {
  while (!app.cards.length || document.querySelector(".card.old")) await new Promise(done => { setTimeout(done); });
  return performance.now();
})()"""
_TIME = """(async (name, ids) => {
  const read = length => new Promise(done => {
    const begin = performance.now();
    ask("read", {ids: ids.slice(0, length), names: [name]}, found => found.bits && done(performance.now() - begin));
  });
  const first = await read(1), all = await read(1000), times = [];
  for (let length = 1001; length <= 1100; length++) times.push(await read(length));
  return {first, median: times.sort((a, b) => a - b)[50], all};
})(%r, app.game.text.slice(200, 1300))"""


def main() -> None:
    """Print the size of the page, the time until it can be used, and a line for each model."""
    page = Layout(ROOT).playground
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.open(page)
        shaded = browser.run(_READY)
        version = browser.call("Browser.getVersion")["product"]
        print(f"{origin()}, {version}")
        print(f"{page.name}: {page.stat().st_size / 1e6:.1f} MB; its text shaded by three models after {shaded:.0f} ms")
        print(f"\n{'model':<24}{'first (ms)':>12}{'median (ms)':>13}{'1,000 (ms)':>12}")
        for name in browser.run("names"):
            times = browser.run(_TIME % name)
            print(f"{name:<24}{times['first']:>12.1f}{times['median']:>13.2f}{times['all']:>12.0f}")


if __name__ == "__main__":
    main()
