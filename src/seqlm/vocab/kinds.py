"""Kinds of tokens, and the list of them.

To the rest of the pipeline a kind is what :class:`TokenKind` says; only :data:`ALL` names all of
them.

The tokens of subwords are a model of the library ``tokenizers``, stored in ``tokenizer.json`` in
its format. The library tokenizes one pretoken at a time. A character that train lacks is written in
tokens of its bytes in UTF-8 (``byte_fallback``), so nothing is unknown. No pretoken has both a
``<`` and a letter, so the text ``<0x41>`` never becomes the token of a byte.

The tokenizer is trained on a sample of train. Equal settings and texts give equal tokenizers. The
library's trainer of BPE counts and compares whole numbers, so its result does not depend on any
order. Its trainer of Unigram adds probabilities in a random order, so its last digits differ from
run to run: scores are rounded to a thousandth of a nat, and tokens are sorted by score. (Chance
could still choose between two tokens of exactly the same score if only one fits; none were found.)
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from seqlm.core.errors import DataError, needs_extra
from seqlm.core.settings import Section
from seqlm.core.text import window_starts, words
from seqlm.vocab.separators import Separators, estimate_separators

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The names that the library gives to the tokens of the 256 bytes."""
BYTES = {token: bytes([byte]) for byte, token in enumerate(BYTE_TOKENS)}
_UNKNOWN = "<unk>"


_CACHE_SIZE = 1 << 18
"""Pretokens whose tokens are cached."""


class SubwordTokenizer:
    """Splits pretokens into subwords."""

    def __init__(self, description: str) -> None:
        """Take a model as the library describes it in JSON; it is parsed when it is needed."""
        self.description = description

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.description,)

    @cached_property
    def tokens(self) -> list[str]:
        """All tokens in the order of the library's ids, without ``<unk>``, which never occurs."""
        ids = self._library.get_vocab()
        return sorted(ids.keys() - {_UNKNOWN}, key=ids.__getitem__)

    @cached_property
    def encode(self) -> Callable[[str], list[int]]:
        """A function that returns the library's ids of the tokens of a pretoken, whatever the text
        around it."""
        model = self._library.model
        return lru_cache(_CACHE_SIZE)(
            lambda pretoken: [token.id for token in model.tokenize(pretoken)]
        )

    def tokenize(self, pretokens: Sequence[str]) -> list[str]:
        """Return the tokens of some pretokens."""
        tokens = self.tokens
        return [tokens[index] for pretoken in pretokens for index in self.encode(pretoken)]

    @cached_property
    def _library(self) -> "Tokenizer":
        with needs_extra("subwords", "a model over subwords"):
            from tokenizers import Tokenizer

        try:
            return Tokenizer.from_str(self.description)
        except Exception as error:  # the library has no class of its own
            raise DataError(
                f"a corrupt subword tokenizer: run the vocab stage again ({error})"
            ) from error


class TokenKind(ABC):
    """A kind of token: how text is split into its tokens, and how they are joined to text again.

    Only subwords have a ``tokenizer``, which is trained, and no unknown tokens; for the other
    kinds the vocabulary is counted in train, and ``tokenizer`` is None.
    """

    name: ClassVar[str]
    """Its name in settings, paths, and the names of models."""
    noun: ClassVar[str]
    """What messages call one of its tokens."""
    separator: ClassVar[str]
    """The text between two tokens. If it is empty, the tokens are the whole text, with its
    blanks."""
    has_unknown: ClassVar[bool] = True
    """Whether a text may have tokens that the vocabulary lacks."""
    is_character: ClassVar[bool] = False
    """Whether each token is one character."""

    @property
    def is_lossless(self) -> bool:
        """Whether the tokens, one after another, are the whole text, including what joins its
        lines."""
        return not self.separator

    @abstractmethod
    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the tokens of a text, or the pretokens that a tokenizer splits; the text may have
        line ends."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens."""
        return self.separator.join(tokens)

    def length(self, token: str) -> int:
        """Return the number of characters of a token."""
        return len(token)

    def separators(self, text: str, line_separator: str) -> Separators | None:
        """Return the probabilities of what separates the tokens of the training split, unless they
        are the whole text."""
        if self.is_lossless:
            return None
        return estimate_separators("".join(sample(text)), line_separator)

    def train_tokenizer(
        self, text: str, line_separator: str, settings: Section
    ) -> SubwordTokenizer | None:
        """Train a tokenizer on the training split, if the kind has one."""
        return None


class CharKind(TokenKind):
    """Characters."""

    name, noun, separator = "char", "character", ""
    is_character = True

    def pretokenize(self, text: str, line_separator: str) -> str:
        """Return the text with its lines joined: it is a sequence of its characters."""
        return text.replace("\n", line_separator)


class WordKind(TokenKind):
    """Words."""

    name, noun, separator = "word", "word", " "

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the words of a text; a tab separates words as a space does."""
        return words(text.replace("\n", " ").replace("\t", " "))


# A fixed list instead of a Unicode property, so that all versions of Unicode give equal pretokens.
_MARKS = re.escape("".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()))
_MARKS += "¡-©«-´¶-¹»-¿×÷،؛؟۔।॥\u2010-\u2027\u2030-\u205e\u20a0-\u20c0\u2190-\u2bff"
_MARKS += "\u3001-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_PRETOKENS = re.compile(rf" ?[^ \n{_MARKS}]+(?:['’][^ \n{_MARKS}]+)*| ?[{_MARKS}]+|[ \n]")
"""A word with the space before it and the apostrophes inside it; punctuation; or a single blank."""
_MAX_PRETOKEN = 100
"""Characters of a pretoken; longer ones are cut."""
_PARTS = re.compile(f"(?s).{{1,{_MAX_PRETOKEN}}}")


class SubwordParams(Section):
    """Settings of subwords."""

    algorithm: Literal["bpe", "unigram"]
    """How subwords are learned: bpe merges pairs, unigram drops tokens from a large set by
    likelihood."""
    vocab_size: Literal["auto"] | Annotated[int, Field(ge=300, le=1_000_000)]
    """Most tokens, with ``<unk>`` and the 256 bytes, but at least all characters of train; a short
    text has fewer to learn. See :func:`automatic_size`."""


_SAMPLE = 1 << 23
"""Characters of a longer text that are sampled, in evenly spaced passages."""
_PASSAGES = 64
_MIN_FREQ = 2
"""Pairs that occur less often are not merged: a token that train has once says nothing about other
text."""
_DIGITS = 3
_STEP = 0.0001
"""The difference between the scores that the library gives to characters that no tokenization
needs."""


def sample(text: str) -> Iterator[str]:
    """Yield the part of a text that is learned from, in passages of whole words."""
    if len(text) <= _SAMPLE:
        yield text
        return
    size = _SAMPLE // _PASSAGES
    for start in window_starts(_PASSAGES, size, len(text)).tolist():
        passage = text[start : start + size]
        blanks = [place for place in (passage.find(" "), passage.find("\n")) if place >= 0]
        yield passage[
            min(blanks, default=0) : max(passage.rfind(" "), passage.rfind("\n"), 0) or size
        ]


def automatic_size(num_characters: int, num_bytes: int) -> int:
    """Return the size of a vocabulary for an alphabet of ``num_characters`` and a text of
    ``num_bytes``.

    Besides ``<unk>``, the bytes and the alphabet, it has as many merged tokens as the alphabet
    has characters and half the square root of the text's bytes. On texts of 0.2 to 4 MB the
    bits per character of Kneser-Ney models change little around this size.
    """
    return 1 + len(BYTE_TOKENS) + 2 * num_characters + math.isqrt(num_bytes) // 2


class SubwordKind(TokenKind):
    """Parts of words."""

    name, noun, separator = "subword", "subword", ""
    has_unknown = False

    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the parts of a text that are tokenized one by one."""
        found = _PRETOKENS.findall(text.replace("\n", " ") if line_separator == " " else text)
        if any(len(pretoken) > _MAX_PRETOKEN for pretoken in found):
            found = [part for pretoken in found for part in _PARTS.findall(pretoken)]
        return found if line_separator else [pretoken for pretoken in found if pretoken != "\n"]

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of subwords; bytes that form no character become U+FFFD."""
        return b"".join(BYTES.get(token) or token.encode() for token in tokens).decode(
            "utf-8", "replace"
        )

    def length(self, token: str) -> int:
        """Return how many characters begin in a subword: among the bytes of a character, only the
        first counts."""
        return int(BYTES[token][0] & 0xC0 != 0x80) if token in BYTES else len(token)

    def train_tokenizer(
        self, text: str, line_separator: str, settings: Section
    ) -> SubwordTokenizer:
        """Train a tokenizer on a sample of the training split."""
        from tokenizers import Tokenizer, decoders, models, trainers

        assert isinstance(settings, SubwordParams)
        pretokens = [
            found for part in sample(text) for found in self.pretokenize(part, line_separator)
        ]
        alphabet = set(chain.from_iterable(pretokens))
        auto = automatic_size(len(alphabet), len(text.encode()))
        num_learned = (
            (auto if settings.vocab_size == "auto" else settings.vocab_size) - 1 - len(BYTE_TOKENS)
        )
        if settings.algorithm == "bpe":
            learner = Tokenizer(models.BPE(byte_fallback=True))
            size, special = num_learned + len(BYTE_TOKENS), list(BYTE_TOKENS)
            trainer: Any = trainers.BpeTrainer(
                vocab_size=size,
                min_frequency=_MIN_FREQ,
                special_tokens=special,
                show_progress=False,
            )
            learner.train_from_iterator(pretokens, trainer)
            model = learner.model
        else:
            learner = Tokenizer(models.Unigram())
            num_learned = max(num_learned, len(alphabet))  # the library insists on all characters
            trainer = trainers.UnigramTrainer(vocab_size=num_learned, show_progress=False)
            learner.train_from_iterator(pretokens, trainer)
            scored = _reproducible(json.loads(learner.to_str())["model"]["vocab"])
            # The scores of these do not matter: no pretoken contains them.
            scored += [(token, 0.0) for token in (*BYTE_TOKENS, _UNKNOWN)]
            model = models.Unigram(scored, len(scored) - 1, byte_fallback=True)
        tokenizer = Tokenizer(model)  # without the special tokens, which would be found in text
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return SubwordTokenizer(tokenizer.to_str(pretty=True) + "\n")


def _reproducible(scored: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return tokens with scores that do not depend on chance.

    The library gives the lowest scores to the characters that no likely tokenization needs,
    each a little more than the one before in a random order. Here all of them get the lowest.
    """
    lowest = min((score for _, score in scored), default=0.0)
    highest = lowest + _STEP * sum(len(token) == 1 for token, _ in scored)
    found = [
        (token, lowest if len(token) == 1 and score <= highest else score)
        for token, score in scored
    ]
    return sorted(
        ((token, round(score, _DIGITS)) for token, score in found),
        key=lambda pair: (-pair[1], pair[0]),
    )


ALL: dict[str, TokenKind] = {kind.name: kind for kind in (CharKind(), WordKind(), SubwordKind())}
"""Name -> kind, in the order in which kinds are reported."""

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(ALL)]
    """The name of a kind; settings accept no other string."""

KINDS: tuple[Kind, ...] = tuple(ALL)
"""The names of all kinds."""


def token_kind(name: str) -> TokenKind:
    """Return the kind of this name."""
    return ALL[name]
