"""A random text that resembles Chinese Markdown: thousands of different characters, and hardly a space.

Words of one to three Han characters and their characters are drawn by Zipf's law.
``python tests/chinese.py PATH [BYTES]`` writes one.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_NUM_CHARACTERS, _NUM_WORDS = 6000, 30_000
_FIRST = 0x4E00
_STOPS = list("。。。。？！")
_PAUSES = list("，，，，、；")
_LATIN = ["LSTM", "GPU", "`params.yaml`", "n-gram", "3.14", "[wiki](https://example.org)"]


def chinese_markdown(num_bytes: int, seed: int = 0) -> str:
    """Return about ``num_bytes`` bytes of UTF-8; equal seeds give equal texts."""
    rng = np.random.default_rng(seed)
    characters = np.array([chr(_FIRST + place) for place in rng.permutation(_NUM_CHARACTERS)])
    words = [
        "".join(rng.choice(characters, size, p=_zipf(_NUM_CHARACTERS)))
        for size in rng.choice([1, 2, 3], _NUM_WORDS, p=[0.1, 0.75, 0.15])
    ]
    drawn = iter(rng.choice(len(words), num_bytes // 3, p=_zipf(_NUM_WORDS)).tolist())
    lines, size = ["# " + words[0]], 0
    while size < num_bytes:
        if (shape := rng.random()) < 0.05:
            lines += ["", "## " + "".join(words[next(drawn)] for _ in range(4)), ""]
        elif shape < 0.2:
            lines.append("- " + _sentence(rng, words, drawn))
        else:
            lines += ["".join(_sentence(rng, words, drawn) for _ in range(rng.integers(1, 5))), ""]
        size += len(lines[-1].encode()) + len(lines[-2].encode())
    return "\n".join(lines) + "\n"


def _sentence(rng: np.random.Generator, words: list[str], drawn: Iterator[int]) -> str:
    clauses = []
    for _ in range(rng.integers(1, 4)):
        clause = "".join(words[next(drawn)] for _ in range(rng.integers(3, 9)))
        clauses.append(f"{clause} {rng.choice(_LATIN)} " if rng.random() < 0.03 else clause)
    return str(rng.choice(_PAUSES)).join(clauses) + str(rng.choice(_STOPS))


def _zipf(size: int) -> np.ndarray:
    """Return probabilities that fall with the rank as those of words do."""
    weights = 1 / (np.arange(size) + 10.0)
    return weights / weights.sum()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(
        chinese_markdown(int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000), encoding="utf-8", newline="\n"
    )
