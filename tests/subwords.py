"""Encoded corpora of any kind of token, with pieces learnt from a text where the kind has some."""

from collections.abc import Mapping
from pathlib import Path

from seqlm.vocab.corpus_building import build_corpus
from seqlm.vocab.kinds.registry import Kind, kind_of
from seqlm.vocab.kinds.subword import SubwordParams
from seqlm.vocab.subword_tokenizer import SubwordTokenizer
from seqlm.vocab.vocabulary import Vocab

ALGORITHMS = ("bpe", "unigram", "wordpiece")


def settings(algorithm: str = "bpe", vocab_size: int = 320, min_freq: int = 2) -> SubwordParams:
    """Return settings of a small subword vocabulary."""
    return SubwordParams(algorithm=algorithm, vocab_size=vocab_size, min_freq=min_freq)  # type: ignore[arg-type]


def learnt(train: Path, separator: str = "", **changes: object) -> SubwordTokenizer:
    """Return pieces that are learnt from a file."""
    pieces = kind_of("subword").learn(train, separator, settings(**changes))  # type: ignore[arg-type]
    assert pieces is not None
    return pieces


def build(texts: Mapping[str, Path], folder: Path, kind: Kind, separator: str) -> Vocab:
    """Build the vocabulary of any kind, encode every split, and write all to ``folder``."""
    pieces = None if kind_of(kind).has_unknown else learnt(texts["train"], separator)
    return build_corpus(texts, folder, kind, separator, 0, [], pieces)
