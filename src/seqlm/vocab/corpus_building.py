"""Splits as streams of tokens, and corpora encoded with a vocabulary."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from seqlm.core.errors import DataError, ParamsError
from seqlm.core.files import read_npy, sha256_of_file, temporary_folder, write_blocks
from seqlm.core.text import BLOCK_BYTES, count_text, read_first_lines
from seqlm.vocab.interning import Interner, ProvisionalIds
from seqlm.vocab.kinds.registry import Kind, kind_of
from seqlm.vocab.oov import write_unknown
from seqlm.vocab.subword_tokenizer import SubwordTokenizer
from seqlm.vocab.vocabulary import SplitInfo, Vocab, choose_tokens

SPLITS = ("train", "val", "test")


def stream_blocks(path: Path, kind: Kind, line_separator: str, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    """Yield a split in blocks of text that cut no token.

    A split's last line end is left out; among characters the others become ``line_separator``.
    """
    return kind_of(kind).blocks(path, line_separator, block_bytes)


def token_blocks(
    path: Path, kind: Kind, line_separator: str, block_bytes: int = BLOCK_BYTES
) -> Iterator[Sequence[str]]:
    """Yield the tokens of a split in blocks, strings for characters; of tokens that are learnt what they are cut of."""
    for block in stream_blocks(path, kind, line_separator, block_bytes):
        yield kind_of(kind).cut(block, line_separator)


def require_scorable(texts: Mapping[str, Path], kind: Kind, line_separator: str) -> None:
    """Raise DataError where a split has fewer than two tokens of a kind: the first is given, the others are scored."""
    for split, path in texts.items():
        num_tokens = 0
        for block in token_blocks(path, kind, line_separator):
            num_tokens += len(block)
            if num_tokens >= 2:
                break
        else:
            noun = kind_of(kind).noun
            held = f"one {noun}" if num_tokens else f"no {noun}s"
            raise DataError(
                f"the {split} split holds {held}, and scoring it needs two at least: bring a longer text, "
                f"or raise preprocess.split.{split}"
            )


def build_corpus(
    texts: Mapping[str, Path],
    folder: Path,
    kind: Kind,
    line_separator: str,
    min_freq: int,
    reserved: Sequence[str],
    pieces: SubwordTokenizer | None = None,
) -> Vocab:
    """Build the vocabulary on the training split, encode every split, and write all to ``folder``.

    ``texts`` names the file of each split, train first. Writes ``vocab.json``, one ``.npy``
    of shape ``(num_tokens,)`` a split, and what :mod:`seqlm.vocab.oov` describes. The
    text is read once. ``pieces`` are those of a kind whose tokens were learnt: its vocabulary has
    all of them. Returns the vocabulary. Raises ParamsError where ``min_freq`` leaves
    none of train's tokens in it.
    """
    with temporary_folder(folder) as place:
        numbering = kind_of(kind).numbering(sum(path.stat().st_size for path in texts.values()), line_separator, pieces)
        drafts = {
            split: _drafted(path, kind, line_separator, numbering, place / split) for split, path in texts.items()
        }
        met = numbering.names()
        chosen = choose_tokens(met, drafts["train"].occurrences, min_freq, reserved, keep_all=pieces is not None)
        if not any(chosen.counts[1:]):
            most = max(drafts["train"].occurrences, default=0)
            raise ParamsError(
                f"vocab.{kind}.min_freq = {min_freq}: no {kind_of(kind).noun} of train occurs so often, "
                f"the most frequent {most} times: lower it"
            )
        splits = {
            split: _write_split(draft, chosen.ids, folder / f"{split}.npy", _num_chars(texts[split], line_separator))
            for split, draft in drafts.items()
        }
        first_line = next(read_first_lines(texts["train"], 1))
        vocab = Vocab(kind, chosen.tokens, chosen.counts, line_separator, splits, pieces)
        write_unknown(folder, met, chosen.ids, drafts, len(vocab.tokenize(first_line)))
    vocab.save(folder / "vocab.json")
    return vocab


def _drafted(path: Path, kind: Kind, line_separator: str, numbering: Interner, target: Path) -> ProvisionalIds:
    blocks = stream_blocks(path, kind, line_separator, kind_of(kind).numbered_bytes)
    return ProvisionalIds(target, (numbering.number(block) for block in blocks if block))


def _num_chars(path: Path, line_separator: str) -> int:
    """Return the characters of a split with its lines joined by ``line_separator``."""
    size = count_text(path)
    return size.characters + max(size.lines - 1, 0) * len(line_separator)


def _write_split(draft: ProvisionalIds, ids: NDArray[Any], target: Path, num_chars: int) -> SplitInfo:
    """Write a split's numbers as ids."""
    write_blocks(target, ids.dtype, draft.num_tokens, (ids[part] for part in draft.parts()))
    num_unknown = int(draft.occurrences[ids[: len(draft.occurrences)] == 0].sum())
    return SplitInfo(draft.num_tokens, num_chars, num_unknown, sha256_of_file(target))


def load_split(folder: Path, split: str, *, mmap: bool = False, vocab: Vocab | None = None) -> NDArray[Any]:
    """Return an encoded split, shape ``(num_tokens,)``, of the vocabulary's smallest integer type.

    ``vocab`` is that of the folder, where it was loaded already. Raises DataError where the
    array is not the one that ``vocab.json`` in ``folder`` describes.
    """
    info = (vocab or Vocab.load(folder / "vocab.json")).splits[split]
    path = folder / f"{split}.npy"
    if sha256_of_file(path) != info.sha256:
        raise DataError(f"{path}: its content does not match the SHA-256 in vocab.json: run the vocab stage again")
    return read_npy(path, mmap=mmap)
