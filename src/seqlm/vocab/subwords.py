"""Subword vocabularies: how one is learned from train, and how text is written in its tokens.

The tokens are a model of the library ``tokenizers``, stored in ``tokenizer.json`` in its format. The library tokenizes
one pretoken at a time. Characters that it did not see in training are written in bytes before, so it never meets an
unknown character: the code points U+10FF00 to U+10FFFF stand for the 256 bytes of UTF-8. If a text has such characters
of its own, they are written in bytes too.

The tokenizer is trained on a sample of train, in bounded memory. Equal settings and texts give equal tokenizers. The
library's trainers of BPE and WordPiece count and compare whole numbers, so their result does not depend on any order.
Its trainer of Unigram adds probabilities in a random order, so its last digits differ from run to run: scores are
rounded to a thousandth of a nat, and tokens are sorted by score. (Chance could still choose between two tokens of
exactly the same score if only one fits; none were found.)
"""

import json
import math
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from seqlm.core.files import read_text, require_sha256, sha256_of_file, write_text
from seqlm.core.settings import Section
from seqlm.core.text import evenly_spaced, text_blocks
from seqlm.vocab.interning import Interner

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import Model


_FIRST_BYTE, _LAST_BYTE = 0x10FF00, 0x10FFFF
BYTE_TOKENS = tuple(map(chr, range(_FIRST_BYTE, _LAST_BYTE + 1)))
_RUNS_OF_BYTES = re.compile(f"[{BYTE_TOKENS[0]}-{BYTE_TOKENS[-1]}]+")


def with_byte_fallback(pretoken: str, alphabet: frozenset[str]) -> list[str]:
    """Return the parts of a pretoken that an alphabet can write, and between them each byte of the rest."""
    if alphabet.issuperset(pretoken):
        return [pretoken]
    parts = []
    for is_known, run in groupby(pretoken, alphabet.__contains__):
        text = "".join(run)
        parts += [text] if is_known else [BYTE_TOKENS[byte] for byte in text.encode("utf-8", "surrogatepass")]
    return parts


def decode_bytes(text: str) -> str:
    """Return a text with its byte tokens decoded; bytes that form no character become U+FFFD."""
    return _RUNS_OF_BYTES.sub(_decoded, text)


def num_characters(token: str) -> int:
    """Return how many characters begin in a token: among the bytes of a character, only the first counts."""
    if token[0] < BYTE_TOKENS[0]:
        return len(token)
    return int(ord(token) - _FIRST_BYTE & 0xC0 != 0x80)


def _decoded(run: re.Match[str]) -> str:
    return bytes(ord(token) - _FIRST_BYTE for token in run.group()).decode("utf-8", "replace")


FILE = "tokenizer.json"
_CACHE_SIZE = 1 << 18
"""Pretokens whose tokens are cached."""


class SubwordTokenizer:
    """Splits pretokens into subwords."""

    def __init__(self, description: str) -> None:
        """Take a model as the library describes it in JSON; it is parsed when it is needed."""
        self._description = description
        self._cache: dict[str, list[int]] = {}

    @classmethod
    def load(cls, folder: Path, digest: str) -> "SubwordTokenizer":
        """Read a tokenizer from a folder. Raises DataError if the file is missing or changed."""
        require_sha256(folder / FILE, digest, "vocab.json", "run the vocab stage again")
        return cls(read_text(folder / FILE))

    def save(self, folder: Path) -> str:
        """Write the tokenizer to a folder; return the SHA-256 of the file."""
        write_text(folder / FILE, self._description)
        return sha256_of_file(folder / FILE)

    @cached_property
    def tokens(self) -> list[str]:
        """All tokens in the order of the library's ids."""
        return sorted(self._ids, key=self._ids.__getitem__)

    def encode(self, pretoken: str) -> list[int]:
        """Return the library's ids of the tokens of a pretoken, which do not depend on the text around it."""
        found = self._cache.get(pretoken)
        if found is None:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            parts = with_byte_fallback(pretoken, self._alphabet)
            found = self._cache[pretoken] = [token.id for part in parts for token in self._model.tokenize(part)]
        return found

    def tokenize(self, pretokens: Sequence[str]) -> list[str]:
        """Return the tokens of some pretokens."""
        tokens = self.tokens
        return [tokens[index] for pretoken in pretokens for index in self.encode(pretoken)]

    @cached_property
    def _library(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        return Tokenizer.from_str(self._description)

    @cached_property
    def _model(self) -> "Model":
        model: Model = self._library.model
        return model

    @cached_property
    def _ids(self) -> dict[str, int]:
        return dict(self._library.get_vocab())

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        """The characters that tokens are made of, without those that stand for bytes."""
        return frozenset(token for token in self._ids if len(token) == 1) - frozenset(BYTE_TOKENS)


class SubwordInterner(Interner):
    """Gives subwords the library's ids; all of them count as seen."""

    def __init__(self, tokenizer: SubwordTokenizer, pretokenize: Callable[[str], Sequence[str]]) -> None:
        self._tokenizer, self._pretokenize = tokenizer, pretokenize

    def intern(self, block: str) -> NDArray[Any]:
        """Return the ids of the subwords of a block."""
        return np.fromiter(chain.from_iterable(map(self._tokenizer.encode, self._pretokenize(block))), np.uint32)

    def tokens(self) -> list[str]:
        """Return all subwords."""
        return self._tokenizer.tokens


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
    """Return a tokenizer that is trained on blocks of pretokens (:meth:`seqlm.vocab.kinds.SubwordKind.pretokenize`).

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
