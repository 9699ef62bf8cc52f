"""Random words for benchmarks."""

import numpy as np

VOCAB_SIZE = 50_001


def zipf_text(num_words: int, seed: int = 0) -> np.ndarray:
    """Return the word ids of a text whose frequencies follow Zipf's law and whose words depend on the one before."""
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.zipf(1.3, num_words), VOCAB_SIZE - 1)
    repeats = rng.random(num_words) < 0.5
    # Half of the words are determined by the word before, so that n-grams repeat as they do in text.
    ids[1:] = np.where(repeats[1:], (ids[:-1] * 7919) % (VOCAB_SIZE - 1) + 1, ids[1:])
    return ids
