"""Splits as streams of tokens, and corpora encoded with a vocabulary."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_npy, sha256_of_file, write_blocks
from seqlm.core.text import text_blocks, words
from seqlm.vocab.vocabulary import Kind, SplitInfo, Vocab, build_tokens

SPLITS = ("train", "val", "test")


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
