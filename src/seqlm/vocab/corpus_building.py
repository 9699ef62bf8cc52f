"""Splits as streams of tokens, and corpora encoded with a vocabulary."""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_npy, require_sha256, sha256_of_file, temporary_folder, write_blocks
from seqlm.core.text import BLOCK_BYTES, count_text, quantity, read_first_lines
from seqlm.vocab.interning import ProvisionalIds
from seqlm.vocab.kinds.registry import Kind, token_kind
from seqlm.vocab.oov import write_unknown
from seqlm.vocab.subword_tokenizer import SubwordTokenizer
from seqlm.vocab.vocabulary import SplitInfo, Vocab, choose_tokens

SPLITS = ("train", "val", "test")


def require_scorable(texts: Mapping[str, Path], kind: Kind, line_separator: str) -> None:
    """Raise DataError if a split has fewer than two tokens of a kind: the first one is not scored."""
    found = token_kind(kind)
    for split, path in texts.items():
        blocks = found.blocks(path, line_separator, BLOCK_BYTES)
        tokens = chain.from_iterable(found.pretokenize(block, line_separator) for block in blocks)
        if (num_tokens := len(list(islice(tokens, 2)))) < 2:
            raise DataError(
                f"the {split} split has {quantity(num_tokens, found.noun)}, and scoring it needs two at least: "
                f"bring a longer text, or raise preprocess.split.{split}"
            )


def build_corpus(
    texts: Mapping[str, Path],
    folder: Path,
    kind: Kind,
    line_separator: str,
    min_freq: int,
    reserved: Sequence[str],
    tokenizer: SubwordTokenizer | None = None,
) -> Vocab:
    """Build the vocabulary on the training split, encode every split, and write all to ``folder``.

    ``texts`` names the file of each split, train first. Writes ``vocab.json``, one ``.npy``
    of shape ``(num_tokens,)`` for each split, and the files of :mod:`seqlm.vocab.oov`. The
    text is read once. A ``tokenizer`` has a fixed vocabulary, and all of it is kept. Returns
    the vocabulary. Raises ParamsError if ``min_freq`` leaves none of train's tokens in it.
    """
    with temporary_folder(folder) as work:
        num_bytes = sum(path.stat().st_size for path in texts.values())
        interner, blocks = token_kind(kind).interner(num_bytes, line_separator, tokenizer), token_kind(kind).blocks
        streams = {}
        for split, path in texts.items():
            text = blocks(path, line_separator, token_kind(kind).interned_bytes)
            streams[split] = ProvisionalIds(work / split, (interner.intern(block) for block in text if block))
        seen, train = interner.tokens(), streams["train"].occurrences
        chosen = choose_tokens(seen, train, min_freq, reserved, keep_all=tokenizer is not None)
        if not any(chosen.counts[1:]):
            raise ParamsError(
                f"vocab.{kind}.min_freq = {min_freq}: no {token_kind(kind).noun} of train occurs so often, "
                f"the most frequent {max(train, default=0)} times: lower it"
            )
        splits = {
            split: _write_split(stream, chosen.ids, folder / f"{split}.npy", _num_chars(texts[split], line_separator))
            for split, stream in streams.items()
        }
        vocab = Vocab(kind, chosen.tokens, chosen.counts, line_separator, splits, tokenizer)
        first_line = vocab.tokenize(next(read_first_lines(texts["train"], 1)))
        write_unknown(folder, seen, chosen.ids, streams, len(first_line))
    vocab.save(folder / "vocab.json")
    return vocab


def _num_chars(path: Path, line_separator: str) -> int:
    """Return the characters of a split with its lines joined by ``line_separator``."""
    size = count_text(path)
    return size.characters + max(size.lines - 1, 0) * len(line_separator)


def _write_split(stream: ProvisionalIds, ids: NDArray[Any], target: Path, num_chars: int) -> SplitInfo:
    """Write a split with the ids of the vocabulary."""
    write_blocks(target, ids.dtype, stream.num_tokens, (ids[part] for part in stream.parts()))
    num_unknown = int(stream.occurrences[ids[: len(stream.occurrences)] == 0].sum())
    return SplitInfo(stream.num_tokens, num_chars, num_unknown, sha256_of_file(target))


def load_split(folder: Path, split: str, *, mmap: bool = False, vocab: Vocab | None = None) -> NDArray[Any]:
    """Return an encoded split, shape ``(num_tokens,)``, of the smallest integer type for the vocabulary.

    ``vocab`` is that of the folder, if it is loaded already. Raises DataError if the array is
    not the one that ``vocab.json`` in ``folder`` describes.
    """
    info = (vocab or Vocab.load(folder / "vocab.json")).splits[split]
    path = folder / f"{split}.npy"
    require_sha256(path, info.sha256, "vocab.json", "run the vocab stage again")
    return read_npy(path, mmap=mmap)
