"""How time and memory grow with the text: the stages preprocess, vocab and ngrams on words.

Writes texts of several sizes (random words in lines, ranks spread as in Zipf's law), runs
the three stages by hand on each, and prints the seconds and the peak memory of each.

    python benchmarks/scale.py [--megabytes 10 100 1000] [--work build/scale]
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from processes import measured
from words import VOCAB_SIZE, zipf_text

ROOT = Path(__file__).resolve().parent.parent
WORDS_A_LINE = 12
BLOCK_WORDS = 1 << 20
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(number: int) -> str:
    """Return the word of an id: short ones for small ids, as in language."""
    letters = ""
    while number >= 0:
        letters = LETTERS[number % 26] + letters
        number = number // 26 - 1
    return letters


def write_text(path: Path, num_bytes: int) -> None:
    names = np.array([word(number) for number in range(VOCAB_SIZE)], object)
    written, seed = 0, 0
    with path.open("w", encoding="utf-8", newline="") as file:
        while written < num_bytes:
            ids = zipf_text(BLOCK_WORDS // WORDS_A_LINE * WORDS_A_LINE, seed)
            block = "\n".join(" ".join(line) for line in names[ids].reshape(-1, WORDS_A_LINE))
            written += file.write(block[: num_bytes - written - 1] + "\n")
            seed += 1


def stages(folder: Path) -> dict[str, list[str]]:
    """Return the command of each stage, with everything in ``folder``."""
    corpus, text, reports = str(folder / "corpus"), str(folder / "text"), str(folder / "reports")
    params = ["--params", str(ROOT / "params.yaml")]
    ngrams = ["--models", str(folder / "models"), "--work", str(folder / "work")]
    commands = {
        "preprocess": ["--raw", str(folder / "corpus.txt"), "--text", text, "--reports", reports],
        "vocab": ["--kind", "word", "--text", text, "--corpus", corpus, "--reports", reports],
        "ngrams": ["--kind", "word", "--corpus", corpus, "--text", text, "--reports", reports, *ngrams],
    }
    return {
        name: [sys.executable, str(ROOT / "stages" / f"{name}.py"), *params, *options]
        for name, options in commands.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "scale")
    arguments = parser.parse_args()
    print(f"{'megabytes':>9}  {'stage':<12}{'seconds':>9}{'s/MB':>9}{'peak GiB':>10}")
    for megabytes in arguments.megabytes:
        folder = arguments.work / str(megabytes)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_text(folder / "corpus.txt", megabytes * 10**6)
        for name, command in stages(folder).items():
            try:
                seconds, peak = measured(command)
            except subprocess.CalledProcessError as error:
                sys.exit(f"{name} failed: {error.stderr}")
            print(f"{megabytes:>9}  {name:<12}{seconds:>9.1f}{seconds / megabytes:>9.3f}{peak:>10.2f}", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
