"""Learning the pieces of a subword vocabulary from a sample of train, in bounded memory.

Equal settings and texts give equal pieces. The library's trainers of BPE and WordPiece
count and compare whole numbers, and so give the same in any order. Its trainer of
Unigram adds up probabilities in an order that it draws, and its last digits differ from
run to run: scores are rounded to a thousandth of a nat, and pieces stand in the order of
their scores. (Two pieces of the very same worth, one too many for the vocabulary, could
still be chosen between by chance; none were met.)
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqlm.core.text import text_blocks
from seqlm.vocab.kinds.subword import BYTE_TOKENS, SubwordParams
from seqlm.vocab.subword_tokenizer import SubwordTokenizer, parts_of

SAMPLE_BYTES = 1 << 23
"""Text that pieces are learnt from: of a longer one passages are taken, evenly spread over it."""
_PASSAGES = 64
_MOST_CHARACTERS = 0.75
"""Of the room for pieces, what single characters may take; the rarest beyond that are written in bytes."""
_DIGITS = 3
_STEP = 0.0001
"""By how much the library parts the scores of characters that no spelling needs."""
_BEYOND = 1.0
"""How much less than the least probable piece a byte gets."""
_BATCH = 1000
_THREADS = "TOKENIZERS_PARALLELISM"


def sampled_blocks(path: Path) -> Iterator[str]:
    """Yield the text that pieces are learnt from in blocks, each whole words."""
    size = path.stat().st_size
    if size <= SAMPLE_BYTES:
        yield "".join(text_blocks(path))
        return
    with path.open("rb") as file:
        for number in range(_PASSAGES):
            file.seek(number * (size // _PASSAGES))
            text = file.read(SAMPLE_BYTES // _PASSAGES).decode("utf-8", "ignore")
            places = [place for place in (text.find(" "), text.find("\n")) if place >= 0]
            yield text[min(places, default=0) : max(text.rfind(" "), text.rfind("\n"), 0) or len(text)]


def train_pieces(blocks: Iterable[Sequence[str]], settings: SubwordParams) -> SubwordTokenizer:
    """Return the pieces that are learnt from the stretches of a text (:meth:`SubwordKind.cut`), in blocks."""
    stretches: Counter[str] = Counter()
    for block in blocks:
        stretches.update(block)
    alphabet = _alphabet(stretches, settings)
    known, parts = frozenset(alphabet), Counter[str]()
    for stretch, count in stretches.items():
        for part in parts_of(stretch, known):
            parts[part] += count
    return SubwordTokenizer(_trained(parts, alphabet, settings))


def _alphabet(stretches: Mapping[str, int], settings: SubwordParams) -> list[str]:
    """Return the characters that pieces are made of, the most frequent first."""
    counts: Counter[str] = Counter()
    for stretch, count in stretches.items():
        for character in stretch:
            counts[character] += count
    for never in ("\0", *BYTE_TOKENS):  # the library ends its sentences with the first
        counts.pop(never, None)
    found = sorted(counts, key=lambda character: (-counts[character], character))
    most = int(_MOST_CHARACTERS * (settings.vocab_size - 1 - len(BYTE_TOKENS)))
    return [character for character in found if counts[character] >= settings.min_freq][:most]


def _trained(parts: Mapping[str, int], alphabet: list[str], settings: SubwordParams) -> str:
    """Return the library's description of what it learnt from parts of text, each so often."""
    from tokenizers import Tokenizer, models, trainers

    shared: dict[str, Any] = {
        "vocab_size": settings.vocab_size - 1,
        "initial_alphabet": [*alphabet, *BYTE_TOKENS],
        "show_progress": False,
    }
    if settings.algorithm == "bpe":
        tokenizer = Tokenizer(models.BPE())
        trainer: Any = trainers.BpeTrainer(min_frequency=settings.min_freq, **shared)
    elif settings.algorithm == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        # No byte occurs in what is learnt from: they come behind the pieces.
        room = shared["vocab_size"] - len(BYTE_TOKENS)
        trainer = trainers.UnigramTrainer(**shared | {"vocab_size": room, "initial_alphabet": alphabet})
    else:
        # Pieces inside a word need no mark of their own: the space before the first says where a word begins.
        tokenizer = Tokenizer(models.WordPiece(unk_token="", continuing_subword_prefix=""))
        trainer = trainers.WordPieceTrainer(min_frequency=settings.min_freq, continuing_subword_prefix="", **shared)
    with _one_thread():
        tokenizer.train_from_iterator(_repeated(parts), trainer)
    if settings.algorithm == "unigram":
        tokenizer = Tokenizer(models.Unigram(_in_order(json.loads(tokenizer.to_str())["model"]["vocab"])))
    description: str = tokenizer.to_str(pretty=True)
    return description + "\n"


def _in_order(scored: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return pieces, their scores free of what the library draws, and the bytes behind them.

    Characters that no likely spelling of the text needs get the least score of all pieces from it, each
    in an order that is drawn a little more than the one before; here all of them have the least.
    """
    least = min((score for _, score in scored), default=0.0)
    drawn = least + _STEP * sum(len(piece) == 1 for piece, _ in scored)
    found = [(piece, least if len(piece) == 1 and score <= drawn else score) for piece, score in scored]
    rounded = [(piece, round(score, _DIGITS)) for piece, score in found]
    return sorted(rounded, key=lambda pair: (-pair[1], pair[0])) + [
        (byte, round(least - _BEYOND, _DIGITS)) for byte in BYTE_TOKENS
    ]


def _repeated(parts: Mapping[str, int]) -> Iterator[list[str]]:
    for part, count in parts.items():
        for start in range(0, count, _BATCH):
            yield [part] * min(_BATCH, count - start)


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
