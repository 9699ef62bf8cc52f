"""What a user should know about an encoded corpus before models are trained on it."""

import math

from seqlm.core.text import NUM_CODE_POINTS
from seqlm.vocab.vocabulary import Vocab

BITS_OF_ANY_CHARACTER = math.log2(NUM_CODE_POINTS)
"""The cost of a character that a model lacks: one of all Unicode code points, equally likely."""
_UNKNOWN_JUMP, _UNKNOWN_RATIO = 0.05, 2.0
_COST_WORTH_A_WARNING = 0.05
"""Bits per character."""
_SHORT_SUBWORD = 1.25


def corpus_warnings(vocab: Vocab) -> list[str]:
    """Return warnings about unknown tokens and about subwords that are hardly longer than a character."""
    kind, found = vocab.token_kind, []
    train, val, test = (vocab.splits[split] for split in ("train", "val", "test"))
    if test.unknown_share > max(_UNKNOWN_RATIO * val.unknown_share, val.unknown_share + _UNKNOWN_JUMP):
        found.append(
            f"{test.unknown_share:.1%} of the {kind.noun}s of test are unknown, but only {val.unknown_share:.1%} of "
            "those of val: test may hold other text, such as a licence or another language"
        )
    cost = BITS_OF_ANY_CHARACTER * test.num_unknown / test.num_chars
    if kind.is_character and cost >= _COST_WORTH_A_WARNING:
        found.append(
            f"unknown characters add {cost:.2f} bits per character to every model's score on test: each is charged "
            f"{BITS_OF_ANY_CHARACTER:.1f} bits, as one of {NUM_CODE_POINTS:,} code points"
        )
    length = train.num_chars / max(train.num_tokens, 1)
    if vocab.tokenizer and length < _SHORT_SUBWORD:
        found.append(
            f"a {kind.noun} has {length:.2f} characters on average: set vocab.{kind.name}.vocab_size to auto or "
            "to a larger number"
        )
    return found
