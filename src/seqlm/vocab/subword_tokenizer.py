"""The pieces that a subword vocabulary has, and how a text is written in them.

They are a model of the library ``tokenizers``, kept in ``tokenizer.json`` in its format.
The library finds the pieces of one stretch of text at a time; what it was not shown in
training is spelt in bytes here, so that it never meets a character that it does not know.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_text, sha256_of_file, write_text
from seqlm.vocab.kinds.subword import BYTE_TOKENS

if TYPE_CHECKING:
    from tokenizers.models import Model

FILE = "tokenizer.json"
_MAX_KEPT = 1 << 18
"""Stretches whose pieces are kept."""


class SubwordTokenizer:
    """Pieces, and how stretches of text are made of them."""

    def __init__(self, description: str) -> None:
        """Take a model as the library describes it in JSON; it is read when it is needed."""
        self._description = description
        self._kept: dict[str, list[int]] = {}

    @classmethod
    def load(cls, folder: Path, digest: str) -> "SubwordTokenizer":
        """Return the pieces of a folder. Raises DataError where the file is missing or changed."""
        path = folder / FILE
        if sha256_of_file(path) != digest:
            raise DataError(f"{path}: its content does not match the SHA-256 in vocab.json: run the vocab stage again")
        return cls(read_text(path))

    def save(self, folder: Path) -> str:
        """Write the pieces to a folder; return the SHA-256 of the file."""
        write_text(folder / FILE, self._description)
        return sha256_of_file(folder / FILE)

    @cached_property
    def names(self) -> list[str]:
        """The pieces in the order of the library's numbers."""
        numbers = self._vocab
        return sorted(numbers, key=lambda name: numbers[name])

    def numbers(self, stretch: str) -> list[int]:
        """Return the library's numbers of the pieces of a stretch, which the stretches around it do not change."""
        found = self._kept.get(stretch)
        if found is None:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            parts = spelt(stretch, self._alphabet)
            found = self._kept[stretch] = [token.id for part in parts for token in self._model.tokenize(part)]
        return found

    def tokenize(self, stretches: Sequence[str]) -> list[str]:
        """Return the pieces of some stretches, one after the other."""
        names = self.names
        return [names[number] for stretch in stretches for number in self.numbers(stretch)]

    @cached_property
    def _model(self) -> "Model":
        from tokenizers import Tokenizer

        model: Model = Tokenizer.from_str(self._description).model
        return model

    @cached_property
    def _vocab(self) -> dict[str, int]:
        from tokenizers import Tokenizer

        found: dict[str, int] = Tokenizer.from_str(self._description).get_vocab()
        return found

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        """The characters that pieces are made of; those that stand for bytes are written in bytes themselves."""
        return frozenset(name for name in self._vocab if len(name) == 1) - frozenset(BYTE_TOKENS)


def parts_of(stretch: str, alphabet: frozenset[str]) -> list[str]:
    """Return the parts of a stretch that are written in an alphabet."""
    return [part for part in spelt(stretch, alphabet) if part[0] in alphabet]


def spelt(stretch: str, alphabet: frozenset[str]) -> list[str]:
    """Return the parts of a stretch that are written in an alphabet, and between them each byte of what is not."""
    if alphabet.issuperset(stretch):
        return [stretch]
    parts = []
    for is_known, run in groupby(stretch, alphabet.__contains__):
        text = "".join(run)
        parts += [text] if is_known else [BYTE_TOKENS[byte] for byte in text.encode("utf-8", "surrogatepass")]
    return parts


class SubwordInterner:
    """Numbers pieces as the library does, whether they occur or not."""

    def __init__(self, pieces: SubwordTokenizer, cut: Callable[[str], Sequence[str]]) -> None:
        self._pieces, self._cut = pieces, cut

    def number(self, block: str) -> NDArray[Any]:
        """Return the numbers of the pieces of a block."""
        numbers = chain.from_iterable(map(self._pieces.numbers, self._cut(block)))
        return np.fromiter(numbers, np.uint32)

    def names(self) -> list[str]:
        """Return all pieces."""
        return self._pieces.names
