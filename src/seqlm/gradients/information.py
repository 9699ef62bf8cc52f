"""How much a token says about another at a distance."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlm.core.elementary import log


def mutual_information(ids: NDArray[np.integer], distances: Sequence[int], vocab_size: int) -> NDArray[np.float64]:
    """Return the mutual information, in bits, between tokens at each distance.

    The bias of finite counts is corrected as by Miller and Madow: the estimate is (cells - rows - columns + 1) / (2 N)
    nats too high, counting the cells, rows and columns that occur. If most cells hold one pair or none, this corrects
    too little: see :func:`shuffled_information`.
    """
    wide, bits = np.asarray(ids, np.int64), []
    for distance in distances:
        pairs = np.bincount(wide[:-distance] * vocab_size + wide[distance:], minlength=vocab_size**2)
        joint = pairs.reshape(vocab_size, vocab_size) / pairs.sum()
        rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
        seen = joint > 0
        nats = float((joint[seen] * log(joint[seen] / (rows * columns)[seen])).sum())
        excess = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * pairs.sum())
        bits.append((nats - excess) / math.log(2))
    return np.array(bits)


def shuffled_information(
    ids: NDArray[np.integer], distances: Sequence[int], vocab_size: int, num_shuffles: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation, in bits, of the estimate on shuffled copies of a text.

    Shuffled tokens say nothing about each other, so the mean is the remaining bias of the estimate, and the deviation
    its variation by chance. Each of shape ``(distances,)``.
    """
    rng = np.random.default_rng(seed)
    bits = [mutual_information(rng.permutation(ids), distances, vocab_size) for _ in range(num_shuffles)]
    return np.mean(bits, axis=0), np.std(bits, axis=0, ddof=1)
