"""Training of a subword tokenizer on a sample of train, in bounded memory.

Equal settings and texts give equal tokenizers. The library's trainers of BPE and WordPiece
count and compare whole numbers, so their result does not depend on any order. Its trainer of
Unigram adds probabilities in a random order, so its last digits differ from run to run: scores
are rounded to a thousandth of a nat, and tokens are sorted by score. (Chance could still
choose between two tokens of exactly the same score if only one fits; none were found.)
"""

import json
import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from seqlm.core.settings import Section
from seqlm.core.text import evenly_spaced, text_blocks
from seqlm.vocab.byte_fallback import BYTE_TOKENS, with_byte_fallback
from seqlm.vocab.subword_tokenizer import SubwordTokenizer

SAMPLE_BYTES = 1 << 23
"""A longer text is sampled in evenly spaced passages of this size in all."""
_PASSAGES = 64
_MAX_ALPHABET_SHARE = 0.75
"""Share of the vocabulary, without the bytes, that single characters may take; the rarest others become bytes."""
_DIGITS = 3
_STEP = 0.0001
"""The difference between the scores that the library gives to characters that no tokenization needs."""
_BYTE_PENALTY = 1.0
"""By how much a byte scores below the least probable token, in nats."""
_THREADS = "TOKENIZERS_PARALLELISM"


class SubwordParams(Section):
    """Settings of subwords."""

    algorithm: Literal["bpe", "unigram", "wordpiece"]
    """How subwords are learned: bpe and wordpiece merge pairs, unigram drops tokens from a large set by likelihood."""
    vocab_size: Literal["auto"] | Annotated[int, Field(ge=300, le=1_000_000)]
    """Most tokens, with ``<unk>`` and the 256 bytes; a short text has fewer to learn. See :func:`automatic_size`."""
    character_coverage: Annotated[float, Field(gt=0.5, le=1)]
    """Share of the text that the alphabet covers; the rarest characters beyond it are written in bytes."""
    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Characters that occur less often are written in bytes, and bpe and wordpiece do not merge rarer pairs."""


def sample_text(path: Path) -> Iterator[str]:
    """Yield the text to learn from in blocks of whole words."""
    size = path.stat().st_size
    if size <= SAMPLE_BYTES:
        yield "".join(text_blocks(path))
        return
    with path.open("rb") as file:
        for start in evenly_spaced(_PASSAGES, size // _PASSAGES, size - size % _PASSAGES).tolist():
            file.seek(start)
            text = file.read(SAMPLE_BYTES // _PASSAGES).decode("utf-8", "ignore")
            blanks = [position for position in (text.find(" "), text.find("\n")) if position >= 0]
            yield text[min(blanks, default=0) : max(text.rfind(" "), text.rfind("\n"), 0) or len(text)]


def automatic_size(num_characters: int, num_bytes: int) -> int:
    """Return the size of a vocabulary for an alphabet of ``num_characters`` and a text of ``num_bytes``.

    Besides ``<unk>``, the bytes and the alphabet, it has as many merged tokens as the alphabet
    has characters and half the square root of the text's bytes. On texts of 0.2 to 4 MB the
    bits per character of Kneser-Ney models change little around this size.
    """
    return 1 + len(BYTE_TOKENS) + 2 * num_characters + math.isqrt(num_bytes) // 2


def train_tokenizer(blocks: Iterable[Sequence[str]], num_bytes: int, settings: SubwordParams) -> SubwordTokenizer:
    """Return a tokenizer that is trained on blocks of pretokens (:meth:`SubwordKind.pretokenize`).

    ``num_bytes``: size of the text of which the blocks are a sample.
    """
    pretokens: Counter[str] = Counter()
    for block in blocks:
        pretokens.update(block)
    alphabet = _alphabet(pretokens, settings)
    size = automatic_size(len(alphabet), num_bytes) if settings.vocab_size == "auto" else settings.vocab_size
    alphabet = alphabet[: int(_MAX_ALPHABET_SHARE * (size - 1 - len(BYTE_TOKENS)))]
    known, parts = frozenset(alphabet), Counter[str]()
    for pretoken, count in pretokens.items():
        for part in with_byte_fallback(pretoken, known):
            if part[0] in known:
                parts[part] += count
    return SubwordTokenizer(_train(parts, alphabet, size, settings))


def _alphabet(pretokens: Mapping[str, int], settings: SubwordParams) -> list[str]:
    """Return the characters that cover enough of the text, the most frequent first."""
    counts: Counter[str] = Counter()
    for pretoken, count in pretokens.items():
        for character in pretoken:
            counts[character] += count
    for character in ("\0", *BYTE_TOKENS):  # the library uses the first as the end of a sentence
        counts.pop(character, None)
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    covered = accumulate((counts[character] for character in ranked), initial=0)
    enough = bisect_left(list(covered), settings.character_coverage * counts.total())
    return [character for character in ranked[:enough] if counts[character] >= settings.min_freq]


def _train(parts: Counter[str], alphabet: list[str], size: int, settings: SubwordParams) -> str:
    """Return the library's description of the tokenizer that it learns from parts of text with their counts."""
    from tokenizers import Tokenizer, models, trainers

    shared: dict[str, Any] = {
        "vocab_size": size - 1,
        "initial_alphabet": [*alphabet, *BYTE_TOKENS],
        "show_progress": False,
    }
    if settings.algorithm == "bpe":
        tokenizer = Tokenizer(models.BPE())
        trainer: Any = trainers.BpeTrainer(min_frequency=settings.min_freq, **shared)
    elif settings.algorithm == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        # The training text has no bytes; they are added after the other tokens.
        own = {"vocab_size": size - 1 - len(BYTE_TOKENS), "initial_alphabet": alphabet}
        trainer = trainers.UnigramTrainer(**shared | own)
    else:
        # Tokens inside a word need no prefix: the space before a word marks its first token.
        tokenizer = Tokenizer(models.WordPiece(unk_token="", continuing_subword_prefix=""))
        trainer = trainers.WordPieceTrainer(min_frequency=settings.min_freq, continuing_subword_prefix="", **shared)
    with _one_thread():
        tokenizer.train_from_iterator(parts.elements(), trainer)
    if settings.algorithm == "unigram":
        tokenizer = Tokenizer(models.Unigram(_reproducible(json.loads(tokenizer.to_str())["model"]["vocab"])))
    description: str = tokenizer.to_str(pretty=True)
    return description + "\n"


def _reproducible(scored: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return tokens with scores that do not depend on chance, followed by the bytes.

    The library gives the lowest scores to the characters that no likely tokenization needs,
    each a little more than the one before in a random order. Here all of them get the lowest.
    """
    lowest = min((score for _, score in scored), default=0.0)
    highest = lowest + _STEP * sum(len(token) == 1 for token, _ in scored)
    found = [(token, lowest if len(token) == 1 and score <= highest else score) for token, score in scored]
    rounded = [(token, round(score, _DIGITS)) for token, score in found]
    return sorted(rounded, key=lambda pair: (-pair[1], pair[0])) + [
        (byte, round(lowest - _BYTE_PENALTY, _DIGITS)) for byte in BYTE_TOKENS
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep the library from starting threads."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before
