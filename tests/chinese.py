"""A random text that resembles Chinese Markdown: thousands of different characters, and hardly a space."""

import numpy as np

_NUM_CHARACTERS, _NUM_WORDS = 6000, 30_000
_MARKS = [*"，，，，、；。。。。？！" * 5, " `params.yaml` ", " LSTM "]


def chinese_markdown(num_bytes: int, seed: int = 0) -> str:
    """Return about ``num_bytes`` bytes of UTF-8: words of one to three Han characters, all drawn by Zipf's law."""
    rng = np.random.default_rng(seed)
    characters = np.array([chr(0x4E00 + place) for place in rng.permutation(_NUM_CHARACTERS)])
    of_characters, of_words = _zipf(_NUM_CHARACTERS), _zipf(_NUM_WORDS)
    words = ["".join(rng.choice(characters, size, p=of_characters)) for size in rng.choice([1, 2, 2, 3], _NUM_WORDS)]
    lines, size = [], 0
    while size < num_bytes:
        drawn = rng.choice(words, (rng.integers(1, 12), 6), p=of_words)
        line = "".join("".join(clause) + rng.choice(_MARKS) for clause in drawn)
        lines += [("## " if len(lines) % 20 == 0 else "- " if len(lines) % 6 == 0 else "") + line, ""]
        size += len(line.encode()) + 2
    return "\n".join(lines) + "\n"


def _zipf(size: int) -> np.ndarray:
    """Return probabilities that fall with the rank as those of words do."""
    weights = 1 / (np.arange(size) + 10.0)
    return weights / weights.sum()
