"""Encoded corpora of any kind of token; subwords have a tokenizer that is trained on the text."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from seqlm.core.layout import Layout
from seqlm.pipeline.preprocess import splitting
from seqlm.vocab.corpus import SPLITS, build_corpus
from seqlm.vocab.kinds import Kind, SubwordParams, SubwordTokenizer, token_kind
from seqlm.vocab.vocabulary import Vocab

ALGORITHMS = ("bpe", "unigram")


def trained(train: str, separator: str = "", algorithm: str = "bpe", vocab_size: int | str = 320) -> SubwordTokenizer:
    """Return a tokenizer that is trained on a text."""
    settings = SubwordParams.model_validate({"algorithm": algorithm, "vocab_size": vocab_size})
    tokenizer = token_kind("subword").train_tokenizer(train, separator, settings)
    assert tokenizer is not None
    return tokenizer


def build(texts: Mapping[str, Path], folder: Path, kind: Kind, separator: str) -> Vocab:
    """Build the vocabulary of any kind, encode every split, and write all to ``folder``, as from a text of letters."""
    tokenizer = None if token_kind(kind).has_unknown else trained(texts["train"].read_text(encoding="utf-8"), separator)
    return build_corpus(texts, folder, kind, separator, 0, tokenizer, "letters")


def write_splits(folder: Path, *texts: str) -> dict[str, Path]:
    """Write three texts, or one text three times, as the splits in a folder; return their files."""
    several = texts if len(texts) == 3 else texts * 3
    splitting.write_splits(folder, {split: text.encode() for split, text in zip(SPLITS, several, strict=True)})
    return {split: folder / f"{split}.txt" for split in SPLITS}


def encode(layout: Layout, kinds: Iterable[Kind], separator: str, *texts: str) -> Layout:
    """Write the splits of a project, and encode them as tokens of some kinds."""
    paths = write_splits(layout.splits, *texts)
    for kind in kinds:
        build(paths, layout.corpus(kind), kind, separator)
    return layout
