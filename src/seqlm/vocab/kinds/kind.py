"""The interface of a kind of token: everything that the pipeline asks of one."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from seqlm.core.settings import Section
from seqlm.core.text import BLOCK_BYTES, text_blocks
from seqlm.vocab.interning import Interner
from seqlm.vocab.subword_tokenizer import SubwordTokenizer

Token = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]


class CountedParams(Section):
    """Settings of a kind whose vocabulary is counted in train."""

    min_freq: Annotated[int, Field(ge=0, le=10**9)]
    """Tokens that occur less often in train are left out of the vocabulary."""
    reserved_tokens: Annotated[list[Token], Field(max_length=1000)]
    """Tokens that follow ``<unk>``, whether or not the text has them."""

    @model_validator(mode="after")
    def _distinct(self) -> "CountedParams":
        if len({"<unk>", *self.reserved_tokens}) != len(self.reserved_tokens) + 1:
            raise ValueError("reserved_tokens must be distinct and not <unk>")
        return self


class TokenKind(ABC):
    """A kind of token: how text is split into its tokens, and how they are joined to text again.

    Only subwords have a ``tokenizer``, which is trained, and no unknown tokens; for the other
    kinds the vocabulary is counted in train, and ``tokenizer`` is None.
    """

    name: ClassVar[str]
    """Its name in settings, paths, and the names of models."""
    noun: ClassVar[str]
    """What messages call one of its tokens."""
    settings: ClassVar[type[Section]] = CountedParams
    """The model of its settings in the section ``vocab``."""
    separator: ClassVar[str]
    """The text between two tokens. If it is empty, the tokens are the whole text, with its blanks."""
    has_unknown: ClassVar[bool] = True
    """Whether a text may have tokens that the vocabulary lacks."""
    is_character: ClassVar[bool] = False
    """Whether each token is one character."""
    interned_bytes: ClassVar[int] = BLOCK_BYTES
    """Bytes of text that are interned at once. Each block is counted into a table as long as the vocabulary."""

    @property
    def is_lossless(self) -> bool:
        """Whether the tokens, one after another, are the whole text, including what joins its lines."""
        return not self.separator

    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks of text that cut no token; its last line end is left out."""
        pending: list[str] = []
        for block in text_blocks(path, block_bytes):
            # The last blank waits: it may be the split's last line end, and subwords may begin with a space.
            end = max(block.rfind(" "), block.rfind("\n"))
            if end >= 0 and (text := "".join([*pending, block[:end]])):
                yield text
            pending = [block[end:]] if end >= 0 else [*pending, block]
        yield "".join(pending).removesuffix("\n")

    @abstractmethod
    def pretokenize(self, text: str, line_separator: str) -> Sequence[str]:
        """Return the tokens of a text, or the pretokens that a tokenizer splits; the text may have line ends."""

    def tokenize(self, text: str, line_separator: str, tokenizer: SubwordTokenizer | None) -> list[str]:
        """Return the tokens of a cleaned text of any number of lines."""
        return list(self.pretokenize(text, line_separator))

    @abstractmethod
    def interner(self, num_bytes: int, line_separator: str, tokenizer: SubwordTokenizer | None) -> Interner:
        """Return an interner of the tokens of a text of this size."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens."""
        return self.separator.join(tokens)

    def decode_incremental(self, joined: str) -> tuple[str, str]:
        """Return the text of joined tokens as far as it is complete, and the rest, which needs the next tokens."""
        return joined, ""

    def length(self, token: str) -> int:
        """Return the number of characters of a token."""
        return len(token)

    def characters_before_first(self, block: str) -> int:
        """Return the number of characters before the first token of a block, or all of them if it has none."""
        return 0 if self.is_lossless else len(block) - len(block.lstrip(" \n"))

    def vocab_rule(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return how often a token must occur to enter the vocabulary, and the tokens that are always in it."""
        assert isinstance(settings, CountedParams)
        return settings.min_freq, settings.reserved_tokens

    def train_tokenizer(self, path: Path, line_separator: str, settings: Section) -> SubwordTokenizer | None:
        """Train a tokenizer on the training split, if the kind has one."""
        return None
