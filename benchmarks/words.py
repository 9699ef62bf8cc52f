"""Random words for benchmarks."""

import numpy as np

VOCAB_SIZE = 50_001


def zipf_text(num_words: int, seed: int = 0) -> np.ndarray:
    """Return word ids of a text whose next word depends on the last, ranks spread as in Zipf's law."""
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.zipf(1.3, num_words), VOCAB_SIZE - 1)
    repeats = rng.random(num_words) < 0.5
    # Half of the words follow from the word before, so that n-grams repeat as they do in text.
    ids[1:] = np.where(repeats[1:], (ids[:-1] * 7919) % (VOCAB_SIZE - 1) + 1, ids[1:])
    return ids
