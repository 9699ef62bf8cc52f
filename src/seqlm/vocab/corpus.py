"""Corpora encoded with a vocabulary: each split is a stream of token ids.

Beside the ids of each split, ``unknown_SPLIT.npy`` has a number for each token that the vocabulary
lacks, in their order. ``unknown.json`` names the tokens by these numbers, in the order of their
first appearance in train, val, test. Together with the ids they contain the whole text, so the
``ngrams`` stage describes it without reading it again.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlm.core.errors import DataError
from seqlm.core.files import read_text
from seqlm.core.memory import require_memory
from seqlm.core.stored import Digests, Stored, read_array, write_array
from seqlm.vocab.kinds import Kind, SubwordTokenizer, TokenKind, token_kind
from seqlm.vocab.vocabulary import Parts, SplitInfo, Vocab, VocabFile, choose_tokens

SPLITS = ("train", "val", "test")
_MEMORY_PER_BYTE = 6
"""Bytes of memory that encoding takes for each byte of a text, which is read whole."""

_POSITIONS_AT_ONCE = 1 << 16
"""Positions of a stream that a search looks at together."""


def intern_texts(
    texts: Iterable[str],
    kind: TokenKind,
    line_separator: str,
    tokenizer: SubwordTokenizer | None = None,
) -> tuple[list[str], list[Parts], list[int]]:
    """Return the tokens of some texts by first appearance, and each text as ids of these tokens,
    and its length.

    Subwords have the ids of their tokenizer, and all count as seen. The length is in characters,
    with lines joined; the last line end of a text joins nothing.
    """
    ids = defaultdict[str, int]()
    ids.default_factory = ids.__len__

    def intern(piece: str) -> NDArray[np.integer]:
        places: Any = ...
        if kind.is_character:
            import pandas as pd

            text = str(kind.pretokenize(piece, line_separator))
            places, codes = pd.factorize(np.frombuffer(text.encode("utf-32-le"), np.uint32))
            tokens: Iterable[str] = map(chr, codes)
        elif not tokenizer and len(piece) > _PIECE // 2:
            # Others are read before Numba is imported.
            from seqlm.vocab.interning import number_words

            places, tokens = number_words(f"{piece}\n".encode())
        else:
            tokens = kind.pretokenize(piece, line_separator)
        numbers = (
            chain.from_iterable(map(tokenizer.encode, tokens))
            if tokenizer
            else map(ids.__getitem__, tokens)
        )
        found: NDArray[np.integer] = np.fromiter(numbers, np.uint32)[places]
        return found.astype(np.min_scalar_type(found.max(initial=0)))

    streams, lengths = [], []
    # No second copy of a text is kept.
    for content in map(methodcaller("removesuffix", "\n"), texts):
        streams.append(list(map(intern, pieces(content))))
        lengths.append(len(content) + content.count("\n") * (len(line_separator) - 1))
    return tokenizer.tokens if tokenizer else list(ids), streams, lengths


_PIECE = 1 << 22
"""Characters of a text that are split into tokens at once, so that few of the tokens exist at the
same time."""


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that cut no token: all but the first begin with a space or a line
    end."""
    # As much as fits before a blank or the end, or a longer word.
    return (found[0] for found in re.finditer(rf"(?s).{{1,{_PIECE}}}(?=[ \n]|\Z)|.[^ \n]*", text))


def build_corpus(
    texts: Mapping[str, Path],
    folder: Path,
    kind: Kind,
    line_separator: str,
    min_freq: int = 0,
    tokenizer: SubwordTokenizer | None = None,
    normalise: str = "none",
) -> Vocab:
    """Build the vocabulary on the training split, encode every split, and write all to ``folder``.

    ``texts`` names the file of each split, train first. A ``tokenizer`` has a fixed vocabulary, and
    all of it is kept. ``normalise`` says how the text was cleaned. Writes ``vocab.json``, one
    ``.npy`` of shape ``(num_tokens,)`` for each split, and the unknown tokens. Returns the
    vocabulary. Raises ParamsError if ``min_freq`` leaves none of train's tokens in it, and
    MachineError for a text that is too large for this machine's memory.
    """
    size = sum(path.stat().st_size for path in texts.values() if path.exists())
    require_memory(size * _MEMORY_PER_BYTE, f"a text of {size / 1e9:.1f} GB")
    found = token_kind(kind)
    separators = found.separators(read_text(texts["train"]), line_separator)
    seen, streams, lengths = intern_texts(
        map(read_text, texts.values()), found, line_separator, tokenizer
    )
    tokens, counts, ids = choose_tokens(found, seen, streams[0], min_freq)
    is_unknown, splits, digests = ids == 0, {}, {}
    numbers = (np.cumsum(is_unknown) - 1).astype(np.uint32)
    for split, parts, num_chars in zip(texts, streams, lengths, strict=True):
        num_tokens = sum(map(len, parts))
        unknown = np.concatenate(
            [numbers[:0], *(numbers[part[is_unknown[part]]] for part in parts)]
        )
        blocks = (ids[part] for part in parts)
        digest = write_array(split_file(folder, split), blocks, ids.dtype, num_tokens)
        splits[split] = SplitInfo(num_tokens, num_chars, len(unknown), digest)
        digests[split] = write_array(folder / f"unknown_{split}.npy", unknown)
    tokens_left_out = [seen[index] for index in np.flatnonzero(is_unknown).tolist()]
    UnknownTokens(tokens=tokens_left_out, sha256=digests).write(folder / "unknown.json")
    vocab = Vocab(kind, tokens, counts, line_separator, splits, tokenizer, normalise, separators)
    vocab.save(folder / "vocab.json")
    return vocab


def split_file(folder: Path, split: str) -> Path:
    """Return the file of an encoded split."""
    return folder / f"{split}.npy"


def load_split(folder: Path, split: str, vocab: Vocab | None = None) -> NDArray[Any]:
    """Return an encoded split, shape ``(num_tokens,)``, of the smallest integer type for the
    vocabulary, mapped into memory.

    The vocabulary is read if it is not given. Raises DataError if the file is missing, was changed
    or belongs to another vocabulary.
    """
    vocab, path = vocab or Vocab.load(folder / "vocab.json"), split_file(folder, split)
    ids = read_array(path, vocab.split(split).sha256, VocabFile.advice)
    _require_ids(path, ids, len(vocab))
    return ids


def _require_ids(path: Path, ids: NDArray[np.integer], num_tokens: int) -> None:
    if len(ids) and not 0 <= ids.min() <= ids.max() < num_tokens:
        raise DataError(f"{path}: ids of other tokens: {VocabFile.advice}")


class UnknownTokens(Stored):
    """The content of ``unknown.json``."""

    version, advice, max_bytes = VocabFile.version, VocabFile.advice, VocabFile.max_bytes

    tokens: list[str]
    """The tokens of all splits that the vocabulary lacks, in the order of their first
    appearance."""
    sha256: Digests
    """For each split, of the file with the number of each of its unknown tokens."""


@dataclass(frozen=True)
class EncodedSplit:
    """A stream of tokens: their ids, and the tokens that the vocabulary lacks."""

    vocab: Vocab
    ids: NDArray[Any]
    """Shape ``(num_tokens,)``; 0 for tokens that the vocabulary lacks."""
    unknown: NDArray[np.integer]
    """For each token of id 0, in their order, its index in ``unknown_tokens``."""
    unknown_tokens: Sequence[str]
    """The tokens that the vocabulary lacks; some of them may not occur in this stream."""

    def __len__(self) -> int:
        return len(self.ids)

    def distinct_ids(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return the ids from position ``start`` up to ``stop`` or the end, with an id of its own
        for each token.

        Unknown token i of ``unknown_tokens`` has the id ``len(vocab) + i``.
        """
        ids = np.asarray(self.ids[start:stop])
        if len(unknown := np.flatnonzero(ids == 0)):
            first = int(np.searchsorted(self._unknown_positions, start))
            ids = ids.astype(np.int64)
            ids[unknown] = len(self.vocab) + self.unknown[first : first + len(unknown)].astype(
                np.int64
            )
        return ids

    def lengths(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the number of characters of each token from position ``start`` up to ``stop`` or
        the end."""
        lengths: NDArray[np.int64] = self._lengths[self.distinct_ids(start, stop)]
        return lengths

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the tokens as they appear in the text, from position ``start`` up to ``stop`` or
        the end."""
        return [self._texts[index] for index in self.distinct_ids(start, stop).tolist()]

    @cached_property
    def _unknown_positions(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.ids == 0)

    @cached_property
    def _texts(self) -> list[str]:
        return [*self.vocab.tokens, *self.unknown_tokens]

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return self.vocab.lengths(self._texts)


@dataclass(frozen=True)
class EncodedCorpus:
    """All splits of a corpus, encoded with the vocabulary of train."""

    vocab: Vocab
    splits: dict[str, EncodedSplit]
    unknown_tokens: Sequence[str]
    """The tokens of all splits that the vocabulary lacks, in the order of their first
    appearance."""


def load_corpus(folder: Path, kind: str | None = None) -> EncodedCorpus:
    """Return the encoded corpus of a folder; its arrays are mapped from files.

    Raises DataError if a file is missing, or if the tokens are of another ``kind``.
    """
    vocab = Vocab.load(folder / "vocab.json", kind)
    missing, splits = UnknownTokens.read(folder / "unknown.json"), {}
    for split in SPLITS:
        path = folder / f"unknown_{split}.npy"
        unknown = read_array(path, missing.sha256.get(split, ""), missing.advice)
        _require_ids(path, unknown, len(missing.tokens))
        ids = load_split(folder, split, vocab)
        splits[split] = EncodedSplit(vocab, ids, unknown, missing.tokens)
    return EncodedCorpus(vocab, splits, missing.tokens)


AUTO = "auto"
"""In a setting: the beginning of val instead of given words."""

_READ_TOKENS = 1000
_PROMPT = re.compile(r"\S(?:.{0,19}(?<!\s)(?=\s|\Z)|.{0,19})", re.DOTALL)
"""At most 20 characters: up to the end of a word, or 20 if no word ends among them."""


def prompts(vocab: Vocab, ids: NDArray[np.integer], count: int) -> list[str]:
    """Return up to ``count`` pieces of text from the beginning of a split, one after another.

    ``ids`` are tokens of ``vocab``, of any kind. A piece has at most 20 characters and ends
    before a space if possible; tokens that the vocabulary lacks are left out. Raises DataError
    if the split begins with nothing but spaces.
    """
    text = vocab.join(vocab.decode(index for index in ids[:_READ_TOKENS].tolist() if index))
    found = _PROMPT.findall(text)[:count]
    if not found:
        raise DataError("val begins with nothing to continue: set the prefixes")
    return found


def known_prefixes(
    wanted: str | Sequence[str],
    vocab: Vocab,
    train_ids: NDArray[np.integer],
    val_ids: NDArray[np.integer],
    count: int,
) -> list[str]:
    """Return the texts to continue that train has; for ``auto``, or if it has none of them, the
    first ``count`` pieces of val. Raises DataError as :func:`prompts` does."""
    texts = [] if wanted == AUTO else wanted
    known = [text for text in texts if occurs(vocab.encode(vocab.tokenize(text)), train_ids)]
    return known or prompts(vocab, val_ids, count)


def occurs(wanted: NDArray[np.integer], ids: NDArray[np.integer]) -> bool:
    """Return whether some tokens, all of them known, follow one another in a stream.

    The stream is searched in blocks, so that little memory is needed.
    """
    if 0 in wanted:
        return False
    end = len(ids) - len(wanted) + 1
    for start in range(0, end, _POSITIONS_AT_ONCE):
        positions = np.arange(start, min(start + _POSITIONS_AT_ONCE, end))
        for offset, token in enumerate(wanted.tolist()):
            positions = positions[ids[positions + offset] == token]
        if len(positions):
            return True
    return False
