"""What tells one kind of token from another: all that the pipeline asks of a kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from seqlm.core.settings import Section
from seqlm.core.text import BLOCK_BYTES

if TYPE_CHECKING:
    from seqlm.vocab.interning import Interner
    from seqlm.vocab.subword_tokenizer import SubwordTokenizer


class TokenKind(ABC):
    """A kind of token: how text is cut into its tokens, and how they make text again.

    A kind whose tokens are learnt from train has *pieces*; the others take no notice of them.
    """

    name: ClassVar[str]
    """In settings, paths, and the names of models."""
    noun: ClassVar[str]
    """One of its tokens, in messages."""
    settings: ClassVar[type[Section]]
    """Of its entry in the section ``vocab``."""
    joiner: ClassVar[str]
    """What stands between two tokens in the text. Where it is nothing, the tokens are the text, blanks and all."""
    has_unknown: ClassVar[bool]
    """Whether a text may have tokens that the vocabulary lacks."""
    is_character: ClassVar[bool] = False
    """Whether each token is one character."""
    numbered_bytes: ClassVar[int] = BLOCK_BYTES
    """Text that is numbered at once. It is counted into a table as long as the vocabulary."""

    @property
    def is_lossless(self) -> bool:
        """Whether the tokens, one behind the other, are the whole text, what joins its lines included."""
        return not self.joiner

    @abstractmethod
    def blocks(self, path: Path, line_separator: str, block_bytes: int) -> Iterator[str]:
        """Yield a split in blocks of text that cut no token; its last line end is left out."""

    @abstractmethod
    def cut(self, block: str, line_separator: str) -> Sequence[str]:
        """Return the tokens of a block, or what pieces are looked for in; the block may have line ends."""

    @abstractmethod
    def tokenize(self, text: str, line_separator: str, pieces: "SubwordTokenizer | None") -> list[str]:
        """Return the tokens of a cleaned text of any number of lines."""

    @abstractmethod
    def numbering(self, num_bytes: int, line_separator: str, pieces: "SubwordTokenizer | None") -> "Interner":
        """Return what numbers the tokens of a text of this size."""

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens."""
        return self.joiner.join(tokens)

    def whole(self, joined: str) -> tuple[str, str]:
        """Return the text of joined tokens so far as it is whole, and what waits for the tokens behind it."""
        return joined, ""

    def length(self, token: str) -> int:
        """Return how many characters of the text a token has."""
        return len(token)

    def characters_before_first(self, block: str) -> int:
        """Return how many characters stand before the first token of a block, all of them where it has none."""
        return 0 if self.is_lossless else len(block) - len(block.lstrip(" \n"))

    def choice(self, settings: Section) -> tuple[int, Sequence[str]]:
        """Return how often a token must occur to be in the vocabulary, and the tokens that it has anyway."""
        return 0, ()

    def learn(self, path: Path, line_separator: str, settings: Section) -> "SubwordTokenizer | None":
        """Learn the pieces from the training split, where the kind has some."""
        return None


def blocks_behind_blanks(blocks: Iterable[str]) -> Iterator[str]:
    """Yield a text in blocks that end behind a space or a line end."""
    pieces: list[str] = []
    for block in blocks:
        if end := max(block.rfind(" "), block.rfind("\n")) + 1:
            yield "".join([*pieces, block[:end]])
            pieces = []
        pieces.append(block[end:])
    yield "".join(pieces)
