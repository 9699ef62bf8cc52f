"""The tokens of a subword vocabulary, and how text is written in them.

They are a model of the library ``tokenizers``, stored in ``tokenizer.json`` in its format.
The library tokenizes one pretoken at a time. Characters that it did not see in training are
written in bytes before, so it never meets an unknown character.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.files import read_text, require_sha256, sha256_of_file, write_text
from seqlm.vocab.byte_fallback import BYTE_TOKENS, with_byte_fallback

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import Model

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


class SubwordInterner:
    """Gives subwords the library's ids; all of them count as seen."""

    def __init__(self, tokenizer: SubwordTokenizer, pretokenize: Callable[[str], Sequence[str]]) -> None:
        self._tokenizer, self._pretokenize = tokenizer, pretokenize

    def intern(self, block: str) -> NDArray[Any]:
        """Return the ids of the subwords of a block."""
        return np.fromiter(chain.from_iterable(map(self._tokenizer.encode, self._pretokenize(block))), np.uint32)

    def tokens(self) -> list[str]:
        """Return all subwords."""
        return self._tokenizer.tokens
