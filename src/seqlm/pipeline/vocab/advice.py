"""What joins the lines of a corpus, and what its user should know about its unknown tokens."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_json
from seqlm.core.text import NUM_CODE_POINTS
from seqlm.vocab.vocabulary import Vocab


def find_line_separator(setting: str, normalise: str, record: Path) -> str:
    """Return what joins lines: the setting ``vocab.line_separator`` or, if it is auto, what suits
    the text.

    ``record`` is what the download stage says of the corpus.
    """
    if setting != "auto":
        return setting.replace("\\n", "\n")
    return "\n" if normalise == "none" else str(read_json(record)["line_separator"])


UNIFORM_CHAR_BITS = math.log2(NUM_CODE_POINTS)
"""The cost of a character that a model lacks: one of all Unicode code points, equally likely."""
_UNKNOWN_JUMP, _UNKNOWN_RATIO = 0.05, 2.0
"""By more than this, the share of unknown tokens does not grow within one text."""
_COST_WORTH_A_WARNING = 0.05
"""Bits per character."""


def corpus_warnings(vocab: Vocab, train: NDArray[np.integer]) -> list[str]:
    """Return warnings about unknown tokens; ``train`` are the ids of the training split."""
    kind, found = vocab.token_kind, list[str]()
    val, test = vocab.splits["val"], vocab.splits["test"]
    if not kind.has_unknown:
        return []
    # What the end of train, as long as val, has for the first time.
    end = np.bincount(train[-min(val.num_tokens, len(train) // 2) :], minlength=len(vocab))
    is_new = np.asarray(vocab.counts) <= end
    is_new[0] = True
    new = float(end[is_new].sum() / max(end.sum(), 1))
    shares = {
        "the end of the training set": new,
        "the validation set": val.unknown_share,
        "the test set": test.unknown_share,
    }
    for (before, less), (split, more) in pairwise(shares.items()):
        if not found and more > max(_UNKNOWN_RATIO * less, less + _UNKNOWN_JUMP):
            found.append(
                f"{more:.1%} of the {kind.noun}s of {split} are unknown, but only {less:.1%} of "
                f"those of {before}: "
                f"{split} may contain other text, such as a license or another language"
            )
    cost = UNIFORM_CHAR_BITS * test.num_unknown / test.num_chars
    if kind.is_character and cost >= _COST_WORTH_A_WARNING:
        found.append(
            f"unknown characters add {cost:.2f} bits per character to every model's score on "
            "the test set: each is charged "
            f"{UNIFORM_CHAR_BITS:.1f} bits, as one of {NUM_CODE_POINTS:,} code points"
        )
    return found
