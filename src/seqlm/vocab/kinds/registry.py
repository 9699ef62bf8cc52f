"""The list of all kinds of tokens; every other module looks kinds up here."""

from typing import TYPE_CHECKING, Literal

from seqlm.vocab.kinds.char import CharKind
from seqlm.vocab.kinds.kind import TokenKind
from seqlm.vocab.kinds.subword import SubwordKind
from seqlm.vocab.kinds.word import WordKind

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
