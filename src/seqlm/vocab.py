"""Vocabularies of characters and words, and corpora encoded with them (section 8.2).

A vocabulary is built on the training split alone. ``<unk>`` is token 0; reserved tokens
follow; then come the tokens of the text by falling frequency, ties by first appearance.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from seqlm.errors import DataError
from seqlm.files import read_npy, read_sealed, sha256_of_file, write_blocks, write_sealed
from seqlm.text import text_blocks, words

Kind = Literal["char", "word"]
UNKNOWN = "<unk>"
SPLITS = ("train", "val", "test")
FORMAT = 2


@dataclass(frozen=True)
class SplitInfo:
    """Size of one encoded split; ``num_chars`` counts its lines joined by the line separator."""

    num_tokens: int
    num_chars: int
    num_unknown: int
    sha256: str

    @property
    def unknown_share(self) -> float:
        """Share of the split's tokens that the vocabulary lacks."""
        return self.num_unknown / max(1, self.num_tokens)


@dataclass(frozen=True)
class Vocab:
    """Tokens and their indices.

    ``counts[i]`` is how often ``tokens[i]`` occurs in the training split; that of
    ``<unk>`` is the number of training tokens that ``min_freq`` left out.
    """

    kind: Kind
    tokens: list[str]
    counts: list[int]
    line_separator: str
    splits: dict[str, SplitInfo]
    _indices: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_indices", {token: index for index, token in enumerate(self.tokens)})

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._indices

    @property
    def num_chars(self) -> dict[str, int]:
        """Characters of each split: what bits per character divide by, for both kinds of token."""
        return {name: split.num_chars for name, split in self.splits.items()}

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest unsigned integer type that holds every index."""
        return np.min_scalar_type(len(self) - 1)

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return the indices of ``tokens``, 0 for those the vocabulary lacks; shape ``(len(tokens),)``."""
        indices = self._indices
        return np.fromiter((indices.get(token, 0) for token in tokens), np.int64, len(tokens))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of ``ids``. Raises IndexError for an index outside the vocabulary."""
        size = len(self)
        result = []
        for index in ids:
            if not 0 <= index < size:
                raise IndexError(f"index {index} is outside a vocabulary of {size}")
            result.append(self.tokens[index])
        return result

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a cleaned text of any number of lines."""
        if self.kind == "char":
            return list(text.replace("\n", self.line_separator))
        return words(text.replace("\n", " "))

    def join(self, tokens: Iterable[str]) -> str:
        """Return the text of ``tokens``: words are joined by spaces."""
        return ("" if self.kind == "char" else " ").join(tokens)

    @classmethod
    def load(cls, path: Path) -> "Vocab":
        """Read a ``vocab.json``. Raises DataError where it is broken or of another format."""
        value = read_sealed(path, FORMAT, "run the vocab stage again")
        splits = {name: SplitInfo(**info) for name, info in value["splits"].items()}
        return cls(value["kind"], value["tokens"], value["counts"], value["line_separator"], splits)

    def save(self, path: Path) -> None:
        """Write this vocabulary as JSON with a hash of its content."""
        value = {
            "format": FORMAT,
            "kind": self.kind,
            "line_separator": self.line_separator,
            "splits": {name: asdict(info) for name, info in self.splits.items()},
            "tokens": self.tokens,
            "counts": self.counts,
        }
        write_sealed(path, value)


def token_blocks(path: Path, kind: Kind, line_separator: str) -> Iterator[list[str] | str]:
    """Yield the tokens of a split in blocks: strings for characters, lists for words.

    A split's last line end is no token; the others become ``line_separator`` among
    characters and part words.
    """
    pending = ""
    for block in text_blocks(path):
        text = pending + block
        if kind == "char":
            # The last character waits: a line end there may be the split's last.
            pending = text[-1:]
            yield text[:-1].replace("\n", line_separator)
        else:
            text = text.replace("\n", " ")
            whole, _, pending = text.rpartition(" ")
            yield words(whole)
    if kind == "char":
        yield pending.replace("\n", "")
    else:
        yield words(pending)


def build_tokens(
    blocks: Iterable[Sequence[str]], min_freq: int, reserved: Sequence[str]
) -> tuple[list[str], list[int]]:
    """Return the tokens of a vocabulary and their counts, from blocks of training tokens.

    ``min_freq``: tokens that occur less often are left out and count as ``<unk>``.
    """
    counter: Counter[str] = Counter()
    for block in blocks:
        counter.update(block)
    tokens = [UNKNOWN, *reserved]
    # sorted() is stable and a Counter keeps the order of first appearance.
    by_frequency = sorted(counter.items(), key=lambda item: -item[1])
    special = set(tokens)
    tokens += [token for token, count in by_frequency if count >= min_freq and token not in special]
    kept = set(tokens)
    counts = [counter[token] for token in tokens]
    counts[0] += sum(count for token, count in by_frequency if token not in kept)
    return tokens, counts


def build_corpus(
    texts: dict[str, Path], folder: Path, kind: Kind, line_separator: str, min_freq: int, reserved: Sequence[str]
) -> Vocab:
    """Build the vocabulary on the training split, encode every split, and write all to ``folder``.

    ``texts`` names the file of each split. Writes ``vocab.json`` and one ``.npy`` of
    shape ``(num_tokens,)`` a split. Returns the vocabulary.
    """
    tokens, counts = build_tokens(token_blocks(texts["train"], kind, line_separator), min_freq, reserved)
    bare = Vocab(kind, tokens, counts, line_separator, {})
    splits = {name: _encode_split(bare, path, folder / f"{name}.npy") for name, path in texts.items()}
    vocab = Vocab(kind, tokens, counts, line_separator, splits)
    vocab.save(folder / "vocab.json")
    return vocab


def _encode_split(vocab: Vocab, text: Path, target: Path) -> SplitInfo:
    num_chars = sum(len(block) for block in token_blocks(text, "char", vocab.line_separator))
    num_tokens = sum(len(block) for block in token_blocks(text, vocab.kind, vocab.line_separator))
    num_unknown = 0

    def encoded() -> Iterator[NDArray[np.int64]]:
        nonlocal num_unknown
        for block in token_blocks(text, vocab.kind, vocab.line_separator):
            ids = vocab.encode(block)
            num_unknown += int(np.count_nonzero(ids == 0))
            yield ids

    write_blocks(target, vocab.dtype, num_tokens, encoded())
    return SplitInfo(num_tokens, num_chars, num_unknown, sha256_of_file(target))


def load_split(folder: Path, split: str, *, mmap: bool = False) -> NDArray[Any]:
    """Return an encoded split, shape ``(num_tokens,)``, of the vocabulary's smallest integer type.

    Raises DataError where the array is not the one that ``vocab.json`` in ``folder`` describes.
    """
    info = Vocab.load(folder / "vocab.json").splits[split]
    path = folder / f"{split}.npy"
    if sha256_of_file(path) != info.sha256:
        raise DataError(f"{path}: its content does not match the SHA-256 in vocab.json: run the vocab stage again")
    return read_npy(path, mmap=mmap)
