"""Two ways to learn subwords, at several sizes, beside characters and words (exercise 8.2-1).

    python benchmarks/subwords.py [--sizes 500 1000]

For the book, cleaned as it is in the chapter, and for Tiny Shakespeare as it is: tokens a
character, and bits per character on val of Kneser-Ney models of several orders, whose
counts come from train. SEQLM_DATA_DIR names the folder with both texts. Nothing depends
on the machine.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from origin import origin

from seqlm.core.layout import Layout
from seqlm.models.scored_text import measure
from seqlm.ngrams.counts.counting import count_ngrams
from seqlm.ngrams.models.base import token_nll
from seqlm.ngrams.models.kneser_ney import KneserNey
from seqlm.pipeline.preprocess.splitting import clean_and_split
from seqlm.pipeline.score.heldout import Heldout
from seqlm.vocab.corpus import SPLITS, build_corpus, load_split
from seqlm.vocab.kinds import SubwordParams, token_kind
from seqlm.vocab.vocabulary import Vocab

CORPORA = {
    "the book": ("timemachine.txt", "letters", ""),
    "the book, lines joined by a space": ("timemachine.txt", "letters", " "),
    "Tiny Shakespeare": ("tinyshakespeare.txt", "none", "\n"),
}
ALGORITHMS = ("bpe", "unigram")
SIZES = (400, 500, 700, 1000, 1500, 2000, 3000, 4000, 8000)
ORDERS = {"char": (5, 6, 7), "word": (2, 3), "subword": (2, 3, 4, 5)}
SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}


def measured(layout: Layout, vocab: Vocab) -> tuple[float, dict[int, float]]:
    """Return tokens per character on val, and bits per character there by the order of Kneser-Ney."""
    stream = Heldout(layout, vocab.kind, max_chars=10**9).stream("val")
    orders = ORDERS[vocab.kind]
    counts = count_ngrams(load_split(layout.corpus(vocab.kind), "train"), len(vocab), max(orders))
    bits = {}
    for order in orders:
        model = KneserNey(counts, order)
        bits[order] = measure(stream.scored_nll(partial(token_nll, model)), stream)["bits_per_character"]
    info = vocab.splits["val"]
    return info.num_tokens / info.num_chars, bits


def vocabularies(layout: Layout, separator: str, sizes: list[int]) -> Iterator[tuple[str, Vocab]]:
    texts = {split: layout.split(split) for split in SPLITS}
    for kind in ("char", "word"):
        yield kind, build_corpus(texts, layout.corpus(kind), kind, separator)
    for algorithm in ALGORITHMS:
        for size in sizes:
            settings = SubwordParams(algorithm=algorithm, vocab_size=size)  # type: ignore[arg-type]
            tokenizer = token_kind("subword").train_tokenizer(
                texts["train"].read_text(encoding="utf-8"), separator, settings
            )
            yield (
                f"{algorithm} {size}",
                build_corpus(texts, layout.corpus("subword"), "subword", separator, 0, tokenizer),
            )


def compare(name: str, sizes: list[int]) -> None:
    file, normalise, separator = CORPORA[name]
    path = Path(os.environ.get("SEQLM_DATA_DIR", ".")) / file
    if not path.exists():
        sys.exit(f"SEQLM_DATA_DIR must name a folder with {file}")
    print(f"\n{name}: bits per character on val by Kneser-Ney, and the order that is best there")
    print(f"{'tokens':<16} {'size':>6} {'tokens a character':>19} {'bits':>7} {'order':>6}")
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(Path(folder))
        clean_and_split(path, file, layout.splits, normalise, SHARES)
        for label, vocab in vocabularies(layout, separator, sizes):
            share, bits = measured(layout, vocab)
            best = min(bits, key=lambda order: bits[order])
            print(f"{label:<16} {len(vocab):>6,} {share:>19.3f} {bits[best]:>7.3f} {best:>6}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    print(origin(), flush=True)
    for name in CORPORA:
        compare(name, list(arguments.sizes))


if __name__ == "__main__":
    main()
